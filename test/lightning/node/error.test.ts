/** What an operator reads when a node fails, and what never stands there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AccessCheck, findProblem } from '../../../src/lightning/node/access.ts'
import {
  NodeError,
  type NodeFailure,
  supportedNetwork,
  transportError,
  UnsupportedNetwork,
} from '../../../src/lightning/node/error.ts'

test('the networks of a node are mainnet, signet and regtest', () => {
  for (const network of ['mainnet', 'signet', 'regtest']) {
    assert.equal(supportedNetwork('A node', network), network)
  }
})

test('a node on another network is told of by its name, if that is one', () => {
  const table: [network: string, named: string][] = [
    ['testnet', 'testnet'],
    ['testnet4', 'testnet4'],
    ['x'.repeat(20), 'x'.repeat(20)],
    ['x'.repeat(21), 'an unknown network'],
    ['', 'an unknown network'],
    ['Mainnet', 'an unknown network'],
    ['a b', 'an unknown network'],
    ['<b>', 'an unknown network'],
  ]
  for (const [network, named] of table) {
    assert.throws(
      () => supportedNetwork('A node', network),
      (error) => {
        assert.ok(error instanceof UnsupportedNetwork)
        assert.equal(
          error.message,
          `A node: the node runs on ${named}; mainnet, signet and regtest are supported`,
        )
        assert.equal(error.reason, 'malformed')
        assert.equal(error.name, 'UnsupportedNetwork')
        return true
      },
    )
  }
})

test('a failed connection is told apart by its code: the certificate, the time, or that nobody is there', () => {
  const coded = (code: string) => Object.assign(new Error('with a secret'), { code })
  const table: [error: unknown, reason: NodeFailure, message: string][] = [
    [coded('ECONNREFUSED'), 'unreachable', 'asking failed (connection refused)'],
    // The other side speaks plain HTTP.
    [
      coded('ERR_SSL_WRONG_VERSION_NUMBER'),
      'unreachable',
      'asking failed (it does not speak TLS. Is it http, not https?)',
    ],
    ...[
      'CERT_HAS_EXPIRED',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_TLS_HANDSHAKE_TIMEOUT',
    ].map((code): [unknown, NodeFailure, string] => [
      coded(code),
      'certificate',
      `asking failed (${code})`,
    ]),
    [new TypeError('with a secret'), 'unreachable', 'asking failed (TypeError)'],
    ['with a secret', 'unreachable', 'asking failed (unknown error)'],
    [new DOMException('with a secret', 'TimeoutError'), 'timeout', 'asking took too long'],
    [new DOMException('with a secret', 'AbortError'), 'unreachable', 'asking failed (AbortError)'],
  ]
  for (const [error, reason, message] of table) {
    const told = transportError('A node', 'asking', error)
    assert.deepEqual([told.message, told.reason], [`A node: ${message}`, reason])
    assert.equal(told.answer, undefined)
    assert.equal(told.cause, undefined)
    assert.equal(told.name, 'NodeError')
  }
  const known = new NodeError('A node', 'an answer is too large', { reason: 'malformed' })
  assert.equal(transportError('A node', 'asking', known), known)
})

test('the operator is told in one sentence why a node cannot be used, and whether it may pass', async () => {
  const check: Omit<AccessCheck, 'info'> = {
    baseUrl: 'https://node:8080',
    speaks: 'speaks as a node does',
    port: 'the port of a node',
    certificate: 'use its own',
    trials: [],
    denied: ({ message }, needs) => `${message}, so look at the rune for ${needs}`,
  }
  const failed = (message: string, reason: NodeFailure) =>
    new NodeError('A node', message, { reason })
  const table: [error: NodeError, sentence: string, isAway: boolean][] = [
    [
      failed('asking failed (connection refused)', 'unreachable'),
      'A node: asking failed (connection refused): nothing at https://node:8080 speaks as a node does',
      true,
    ],
    [
      failed('asking took too long', 'timeout'),
      'A node: asking took too long: whatever is at https://node:8080 does not answer',
      true,
    ],
    [
      failed('asking failed (CERT_HAS_EXPIRED)', 'certificate'),
      'A node: asking failed (CERT_HAS_EXPIRED): the certificate of https://node:8080 ran out; make the node a new one, and copy it here again',
      false,
    ],
    [
      failed('asking failed (ERR_TLS_CERT_ALTNAME_INVALID)', 'certificate'),
      'A node: asking failed (ERR_TLS_CERT_ALTNAME_INVALID): https://node:8080 shows a certificate that the cert of MAYFLY_LIGHTNING_URL does not vouch for; use its own',
      false,
    ],
    [
      failed('an answer is not JSON', 'malformed'),
      'A node: an answer is not JSON: https://node:8080 is not the port of a node',
      false,
    ],
    [
      new NodeError('A node', 'asking was refused', {
        reason: 'refused',
        answer: { code: 1, message: 'no' },
      }),
      'no, so look at the rune for its info',
      false,
    ],
    [failed('asking was refused', 'refused'), 'A node: asking was refused', false],
    [
      new UnsupportedNetwork('A node', 'testnet'),
      'A node: the node runs on testnet; mainnet, signet and regtest are supported',
      false,
    ],
  ]
  for (const [error, sentence, isAway] of table) {
    const info = { needs: 'its info', call: () => Promise.reject(error) }
    assert.deepEqual(await findProblem({ ...check, info }), { sentence, isAway })
  }
})
