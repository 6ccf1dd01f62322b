import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { base64, utf8 } from '../../src/lib/bytes.ts'
import {
  checkSignature,
  guessSignatureProvider,
  SIGNATURE_PROVIDERS,
  type SignatureProvider,
  type SignatureRules,
} from '../../src/protocol/signatures/signatures.ts'
import type { SignatureRule, SignedRequest } from '../../src/protocol/signatures/verdict.ts'
import { mutated } from '../support/arbitraries.ts'
import { vectors } from '../support/vectors.ts'

type Vector = {
  note: string
  expect: 'valid' | SignatureRule
  headers: [name: string, value: string][]
  body: string
  secret: string
  receivedAt: string
  rules?: object
}

const FILES = new Map(
  SIGNATURE_PROVIDERS.map((provider) => [
    provider,
    vectors<{ vectors: Vector[] }>(`signatures/${provider}`).vectors,
  ]),
)

suite('signatures of webhooks', () => {
  test('each provider has vectors', () => {
    const files = readdirSync(new URL('../vectors/signatures/', import.meta.url))
    assert.deepEqual(files.sort(), SIGNATURE_PROVIDERS.map((name) => `${name}.json`).toSorted())
  })

  for (const [provider, list] of FILES) {
    for (const vector of list) {
      test(`a signature of ${provider} is judged as ${vector.expect}: ${vector.note}`, async () => {
        const finding = await check(provider, vector)
        assert.equal(finding.valid ? 'valid' : finding.rule, vector.expect, finding.sentence)
        assert.match(finding.sentence, /^[A-Zsw].*\.$/)
      })
    }

    test(`a valid signature of ${provider} fits no other body and no other secret`, async () => {
      const vector = validOf(list)
      await fc.assert(
        fc.asyncProperty(
          mutated(vector.body || 'x'),
          mutated(vector.secret),
          async (body, secret) => {
            fc.pre(body !== vector.body && keyIn(secret) !== keyIn(vector.secret))
            assert.equal((await check(provider, { ...vector, body })).valid, false)
            assert.equal((await check(provider, { ...vector, secret })).valid, false)
          },
        ),
        { numRuns: 100 },
      )
    })

    test(`any header of ${provider} gives a verdict, and is only valid if it is right`, async () => {
      const vector = validOf(list)
      const values = vector.headers.map(([, value]) => fc.oneof(mutated(value), fc.string()))
      await fc.assert(
        fc.asyncProperty(fc.tuple(...values), async (changed) => {
          const headers = vector.headers.map(([name], index): [string, string] => [
            name,
            changed[index] ?? '',
          ])
          const finding = await check(provider, { ...vector, headers })
          if (!finding.valid) return
          // Space around a value is no part of it, and other schemes beside a valid signature are skipped.
          for (const [index, [, value]] of vector.headers.entries()) {
            const core = value.replace(/^v1,|^sha\d+=|^t=\d+,/, '')
            assert.ok(changed[index]?.toLowerCase().includes(core.toLowerCase()), changed[index])
          }
        }),
        { numRuns: 300 },
      )
    })
  }

  test('what the reference library of Standard Webhooks signs is valid, whatever it is', async () => {
    const secret = fc.uint8Array({ minLength: 24, maxLength: 64 })
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), secret, async (body, key) => {
        const shared = `whsec_${base64(key)}`
        const at = new Date('2026-11-22T12:00:00Z')
        const value = new Webhook(shared).sign('msg_1', at, body)
        const headers = [
          { name: 'webhook-id', value: 'msg_1' },
          { name: 'webhook-timestamp', value: String(at.getTime() / 1000) },
          { name: 'webhook-signature', value },
        ]
        const request = { headers, body: utf8(body), receivedAtMs: at.getTime() }
        const { valid } = await checkSignature(request, shared, { provider: 'standard-webhooks' })
        assert.ok(valid)
      }),
      { numRuns: 100 },
    )
  })

  test('the provider is guessed by the headers of its valid signatures', () => {
    for (const [provider, list] of FILES) {
      if (provider === 'hmac') continue
      for (const vector of list.filter((each) => each.expect === 'valid')) {
        assert.equal(guessSignatureProvider(requestOf(vector)), provider)
      }
    }
    assert.equal(guessSignatureProvider({ headers: [{ name: 'x-signature', value: 'x' }] }), null)
  })

  test('a tolerance that is no number of seconds is refused', async () => {
    for (const toleranceSeconds of [-1, Number.NaN]) {
      await assert.rejects(
        checkSignature(requestOf(validOf(FILES.get('slack') ?? [])), 'x', {
          provider: 'slack',
          toleranceSeconds,
        }),
        RangeError,
      )
    }
  })
})

function check(provider: SignatureProvider, vector: Vector) {
  const rules = { provider, ...vector.rules } as SignatureRules
  return checkSignature(requestOf(vector), vector.secret, rules)
}

/** What counts of a secret: space around it is noticed, and HMAC pads a short key with zeros. */
const keyIn = (secret: string): string =>
  secret
    .trim()
    .replace(/^whsec_/, '')
    .replace(/[\0\s]+$/, '')

function requestOf({ headers, body, receivedAt }: Vector): SignedRequest {
  return {
    headers: headers.map(([name, value]) => ({ name, value })),
    body: utf8(body),
    receivedAtMs: Date.parse(receivedAt),
  }
}

function validOf(list: readonly Vector[]): Vector {
  const first = list.find(({ expect }) => expect === 'valid')
  assert.ok(first)
  return first
}
