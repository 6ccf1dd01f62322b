import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { base64, utf8 } from '../../src/lib/bytes.ts'
import {
  checkSignature,
  guessProvider,
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
  sentence: string
  headers: [name: string, value: string][]
  body: string
  secret: string
  receivedAt: string
  rules?: object
}

/** What a vector leaves out is as in the first one of its file, which is valid. */
type Written = Partial<Omit<Vector, 'headers'>> & { headers?: Record<string, string | string[]> }

const FILES = new Map(SIGNATURE_PROVIDERS.map((provider) => [provider, vectorsOf(provider)]))

function vectorsOf(provider: SignatureProvider): Vector[] {
  const written = vectors<{ vectors: Written[] }>(`signatures/${provider}`).vectors
  const [first] = written
  const sentence = 'The signature is valid: it fits the body and this secret.'
  return written.map((each) => {
    const headers = Object.entries(each.headers ?? first?.headers ?? {})
    const lines = headers.flatMap(([name, values]) => [values].flat().map((value) => [name, value]))
    return { expect: 'valid', sentence, ...first, ...each, headers: lines } as Vector
  })
}

for (const [provider, list] of FILES) {
  for (const vector of list) {
    test(`a signature of ${provider} is judged as ${vector.expect}: ${vector.note}`, async () => {
      const finding = await check(provider, vector)
      assert.equal(finding.valid ? 'valid' : finding.rule, vector.expect, finding.sentence)
      assert.equal(finding.sentence, vector.sentence)
      if (finding.valid || finding.rule === 'header missing') return
      const names = vector.headers.map(([name]) => name.toLowerCase())
      assert.ok(finding.header === null || names.includes(finding.header.toLowerCase()))
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
      assert.equal(guessProvider(requestOf(vector)), provider)
    }
  }
  assert.equal(guessProvider({ headers: [{ name: 'x-signature', value: 'x' }] }), null)
})

test('a signature tells by how much its timestamp is off, in a unit that fits', async () => {
  const slack = validOf(FILES.get('slack') ?? [])
  const signedAt = Date.parse(slack.receivedAt) / 1000
  for (const [difference, text] of [
    [1, '1 s'],
    [119, '119 s'],
    [120, '2 min'],
    [7_199, '119 min'],
    [7_200, '2 h'],
    [172_799, '47 h'],
    [172_800, '2 days'],
    [864_000, '10 days'],
  ] as const) {
    for (const [sign, word] of [
      [1, 'older'],
      [-1, 'newer'],
    ] as const) {
      const receivedAt = new Date((signedAt + sign * difference) * 1000).toISOString()
      const judged = (toleranceSeconds: number) =>
        check('slack', { ...slack, receivedAt, rules: { toleranceSeconds } })
      assert.equal((await judged(difference)).valid, true)
      const sentence = `The signature matches, but its timestamp is ${text} ${word} than the request.`
      assert.equal((await judged(0)).sentence, `${sentence} 0 s is allowed.`)
    }
  }
  const exact = await check('slack', { ...slack, rules: { toleranceSeconds: 0 } })
  assert.equal(exact.valid, true)
})

test('a signature that is hardly too old does not look as if it were allowed', async () => {
  const slack = validOf(FILES.get('slack') ?? [])
  const signedAt = Date.parse(slack.receivedAt) / 1000
  for (const [allowed, difference, text] of [
    [300, 301, '301 s older than the request. 300 s is allowed.'],
    [300, 359, '359 s older than the request. 300 s is allowed.'],
    [300, 360, '6 min older than the request. 5 min is allowed.'],
    [7_200, 7_201, '7201 s older than the request. 7200 s is allowed.'],
  ] as const) {
    const receivedAt = new Date((signedAt + difference) * 1000).toISOString()
    const judged = await check('slack', {
      ...slack,
      receivedAt,
      rules: { toleranceSeconds: allowed },
    })
    assert.equal(judged.sentence, `The signature matches, but its timestamp is ${text}`)
  }
})

test('a signature with digits before or behind it is malformed, and not only a wrong one', async () => {
  for (const provider of ['github', 'slack', 'stripe'] as const) {
    const vector = validOf(FILES.get(provider) ?? [])
    for (const longer of ['$1ab', 'ab$1']) {
      const headers = vector.headers.map(([name, value]): [string, string] => [
        name,
        value.replace(/([0-9a-f]{64})/, longer),
      ])
      const finding = await check(provider, { ...vector, headers })
      assert.equal(!finding.valid && finding.rule, 'header malformed')
    }
  }
})

test('a secret that only contains what tokens begin with is a secret', async () => {
  const shopify = { ...validOf(FILES.get('shopify') ?? []), secret: 'my-shpat_x' }
  const bodyMac = createHmac('sha256', shopify.secret).update(shopify.body).digest('base64')
  shopify.headers = [['X-Shopify-Hmac-Sha256', bodyMac]]
  assert.equal((await check('shopify', shopify)).valid, true)
  const stripe = { ...validOf(FILES.get('stripe') ?? []), secret: 'my-sk_x' }
  const at = Date.parse(stripe.receivedAt) / 1000
  const timed = createHmac('sha256', stripe.secret).update(`${at}.${stripe.body}`).digest('hex')
  stripe.headers = [['Stripe-Signature', `t=${at},v1=${timed}`]]
  assert.equal((await check('stripe', stripe)).valid, true)
  for (const secret of ['my-xoxb-1', 'my-xapp-1']) {
    const slack = { ...validOf(FILES.get('slack') ?? []), secret }
    const second = String(Date.parse(slack.receivedAt) / 1000)
    const mac = createHmac('sha256', secret).update(`v0:${second}:${slack.body}`).digest('hex')
    slack.headers = [
      ['X-Slack-Signature', `v0=${mac}`],
      ['X-Slack-Request-Timestamp', second],
    ]
    assert.equal((await check('slack', slack)).valid, true)
  }
})

test('a signature of Standard Webhooks counts under its own version and its own header alone', async () => {
  const vector = validOf(FILES.get('standard-webhooks') ?? [])
  const signed = ([name, value]: [string, string], change: string): [string, string] => [
    name,
    name === 'webhook-signature' ? change.replaceAll('$', value.slice('v1,'.length)) : value,
  ]
  const judged = (change: string, more: [string, string][] = []) =>
    check('standard-webhooks', {
      ...vector,
      headers: [...vector.headers.map((header) => signed(header, change)), ...more],
    })
  for (const change of ['v2,$', 'v1:$', '$', 'v1,v1,$', 'v1a,$', ' v1,']) {
    const finding = await judged(change)
    assert.equal(!finding.valid && finding.rule, 'header malformed', change)
  }
  assert.match((await judged('v9,x v1a,y')).sentence, /has only v1a signatures/)
  assert.match((await judged('v9,v1a, x')).sentence, /must be v1, and 32 bytes/)
  const other: [string, string][] = [
    ['svix-id', 'x'],
    ['svix-timestamp', '1'],
    ['svix-signature', 'v1,x'],
  ]
  assert.equal((await judged('v1,$', other)).valid, true)
  assert.equal((await judged(' v1,$ ', other)).valid, true)
})

test('a malformed header of Svix is told by its own name', async () => {
  const list = FILES.get('standard-webhooks') ?? []
  const vector = list.find(({ headers }) => headers.some(([name]) => name === 'svix-id'))
  assert.ok(vector)
  for (const name of ['svix-signature', 'svix-timestamp', 'svix-id']) {
    const headers = vector.headers.map(([each, value]): [string, string] => [
      each,
      each === name ? 'x' : value,
    ])
    const finding = await check('standard-webhooks', { ...vector, headers })
    assert.equal(!finding.valid && finding.header, name === 'svix-id' ? 'svix-signature' : name)
  }
})

test('a signature may have space around it, and one that is too old names the header of its time', async () => {
  const github = validOf(FILES.get('github') ?? [])
  const headers = github.headers.map(([name, value]): [string, string] => [name, ` ${value}\t`])
  assert.equal((await check('github', { ...github, headers })).valid, true)
  for (const vector of FILES.get('standard-webhooks') ?? []) {
    const finding = await check('standard-webhooks', vector)
    if (finding.valid || !finding.rule.startsWith('timestamp too')) continue
    assert.equal(finding.header, 'webhook-timestamp', vector.note)
  }
})

test('a tolerance that is no number of seconds is refused', async () => {
  for (const toleranceSeconds of [-1, Number.NaN]) {
    await assert.rejects(
      checkSignature(requestOf(validOf(FILES.get('slack') ?? [])), 'x', {
        provider: 'slack',
        toleranceSeconds,
      }),
      { name: 'RangeError', message: 'toleranceSeconds must be 0 or more' },
    )
  }
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
