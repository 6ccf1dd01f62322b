/** What an operator reads when LND, or its macaroon, is not as it should be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkLnd } from '../../../src/lightning/lnd/lnd.ts'
import { lndError } from '../../../src/lightning/lnd/wire.ts'
import type { AccessProblem } from '../../../src/lightning/node/access.ts'
import type { NodeRequest } from '../../../src/lightning/node/http.ts'

const BAKE = 'bake one with: lncli bakemacaroon invoices:read invoices:write info:read'
const INVALID = lndError('refused', 'no', { code: 3, message: 'no such thing' })

const refused = (message: string) =>
  lndError('refused', `asking was refused: ${message}`, { code: 2, message })

/** Looks at an LND that fails like this: at its info, and at a call of each path. */
async function look(failures: { info?: unknown; read?: unknown; write?: unknown }) {
  const asked: NodeRequest[] = []
  const call = async (request: NodeRequest) => {
    asked.push(request)
    const { read = INVALID, write = INVALID } = failures
    const failure = request.method === 'GET' ? read : write
    if (failure !== null) throw failure
    return {}
  }
  const problem = await checkLnd({
    http: { call },
    info: async () => {
      if (failures.info !== undefined) throw failures.info
    },
    baseUrl: 'https://node:8080',
    timeoutMs: 5_000,
  })
  return { problem, asked }
}

test('a look at the access of LND asks for an invoice that nobody made, and to make one that cannot be', async () => {
  const { problem, asked } = await look({})
  assert.equal(problem, null)
  const rest = { what: 'trying the macaroon', timeoutMs: 5_000 }
  assert.deepEqual(asked, [
    { method: 'GET', path: `/v1/invoice/${'00'.repeat(32)}`, ...rest },
    { method: 'POST', path: '/v1/invoices', json: { value: '1', value_msat: '1' }, ...rest },
  ])
})

test('a look at the access of LND finds no fault with a node that answers where others refuse', async () => {
  assert.equal((await look({ read: null, write: null })).problem, null)
})

test('a look at the access of LND names the permission that the macaroon lacks, and asks no further', async () => {
  const denied = refused('permission denied')
  for (const [failures, permission, questions] of [
    [{ info: denied }, 'info:read', 0],
    [{ read: denied }, 'invoices:read', 1],
    [{ write: denied }, 'invoices:write', 2],
  ] as const) {
    const { problem, asked } = await look(failures)
    const sentence = `LND: the macaroon lacks ${permission}; ${BAKE}`
    assert.deepEqual(problem, { sentence, isAway: false })
    assert.equal(asked.length, questions)
  }
})

test('a look at the access of LND tells a macaroon of another node, or a damaged one, from one that lacks something', async () => {
  for (const message of [
    'verification failed: signature mismatch after caveat verification',
    'cannot get macaroon: root key with id 0 does not exist',
    'caveat "time-before 2026" not satisfied',
    'expected 1 macaroon, got 0',
    'encoding/hex: invalid byte: U+007A',
    'unmarshal v2: section extends past end of buffer',
    'cannot determine data format of binary-encoded macaroon',
  ]) {
    for (const failures of [{ info: refused(message) }, { read: refused(message) }]) {
      assert.deepEqual((await look(failures)).problem, {
        sentence: `LND does not accept the macaroon (of another node, expired or damaged); ${BAKE}`,
        isAway: false,
      })
    }
  }
})

test('a look at the access of LND says what else is wrong with a node, at each of its questions', async () => {
  const at = 'https://node:8080'
  const table: [failure: unknown, problem: AccessProblem][] = [
    [
      lndError('unreachable', 'asking failed'),
      {
        sentence: `LND: asking failed: nothing at ${at} speaks HTTPS as LND does`,
        isAway: true,
      },
    ],
    [
      lndError('certificate', 'asking failed (ERR_TLS_CERT_ALTNAME_INVALID)'),
      {
        sentence: `LND: asking failed (ERR_TLS_CERT_ALTNAME_INVALID): ${at} shows a certificate that the cert of MAYFLY_LIGHTNING_URL does not vouch for; use the node's own tls.cert, made for that host`,
        isAway: false,
      },
    ],
    [
      lndError('malformed', 'an answer is not JSON'),
      { sentence: `LND: an answer is not JSON: ${at} is not the REST port of LND`, isAway: false },
    ],
    [lndError('refused', 'it is odd'), { sentence: 'LND: it is odd', isAway: false }],
  ]
  for (const [failure, problem] of table) {
    for (const at of ['info', 'read', 'write']) {
      assert.deepEqual((await look({ [at]: failure })).problem, problem)
    }
  }
  const locked = refused('wallet locked, unlock it to enable full RPC access')
  assert.deepEqual((await look({ info: locked })).problem, {
    sentence: locked.message,
    isAway: false,
  })
})

test('a look at the access of LND hides no mistake of our own', async () => {
  await assert.rejects(look({ info: new TypeError('ours') }), { message: 'ours' })
  await assert.rejects(look({ write: new TypeError('ours') }), { message: 'ours' })
})
