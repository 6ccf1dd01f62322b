import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { base64url, utf8 } from '../../src/lib/bytes.ts'
import { type Json, jcs } from '../../src/lib/jcs.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import {
  type Answer,
  type Ask,
  books,
  paymentChallengeOf,
  purchase,
  quoteOf,
  SPARK,
} from '../support/buying.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { TestServer } from '../support/server.ts'
import {
  assertBareRefusal,
  assertError,
  capabilityOf,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
} from '../support/wallet-flow.ts'
import { walletFlowContract } from './wallet-flow.ts'
import { lateWalletFlowContract } from './wallet-flow-later.ts'

const PROBLEMS = 'https://paymentauth.org/problems'

walletFlowContract('Payment', PAYMENT)
lateWalletFlowContract('Payment', PAYMENT)

test('a Payment 402 has exactly the documented challenge', async (t) => {
  const server = await startShop(t)
  const answer = await purchase(server, { protocol: 'payment' })
  assert.equal(answer.status, 402)
  const { bolt11, paymentHash, orderId } = quoteOf(answer)
  const invoice = decodeInvoice(bolt11)
  assert.equal(invoice.amountMsat, 100_000)
  assert.equal(invoice.paymentHash, paymentHash)
  assert.equal(invoice.description, 'Mayfly CATCH spark')
  const expires = `${new Date(invoice.expiresAt).toISOString().slice(0, 19)}Z`
  const { id } = paymentChallengeOf(answer)
  assert.match(id, /^[A-Za-z0-9_-]{43}$/)
  const details = { invoice: bolt11, network: 'regtest', paymentHash }
  const request = {
    amount: '100',
    currency: 'sat',
    description: 'Mayfly CATCH spark',
    methodDetails: details,
  }
  const challenge = {
    id,
    realm: 'localhost',
    method: 'lightning',
    intent: 'charge',
    request: base64url(utf8(jcs(request))),
    expires,
    digest: `sha-256=:${createHash('sha256').update(SPARK).digest('base64')}:`,
  }
  assert.deepEqual(answer.lines('www-authenticate'), [
    `Payment id="${id}", realm="localhost", method="lightning", intent="charge", ` +
      `request="${challenge.request}", expires="${expires}", digest="${challenge.digest}"`,
  ])
  assert.deepEqual(answer.lines('content-type'), ['application/problem+json; charset=utf-8'])
  assert.deepEqual(answer.lines('cache-control'), ['no-store'])
  assert.deepEqual(answer.lines('access-control-allow-origin'), ['*'])
  assert.match(answer.lines('access-control-expose-headers').join(), /WWW-Authenticate/)
  assert.deepEqual(JSON.parse(answer.text), {
    type: `${PROBLEMS}/payment-required`,
    title: 'Payment Required',
    status: 402,
    detail: 'Pay the invoice and repeat the identical request with the credential.',
    error: 'payment required',
    challengeId: id,
    challenge,
    request,
    orderId,
    product: 'catch',
    planId: 'spark',
    amountSats: 100,
    priceSats: 100,
    bolt11,
    paymentHash,
    expiresAt: expires,
    network: 'regtest',
  })
  assert.ok(answer.lines('www-authenticate').join().length < 4096, 'what every client can read')
})

test('a request selects its flow', async (t) => {
  const server = await startShop(t)
  const flowOf = (answer: Answer): string => {
    const [field = ''] = answer.lines('www-authenticate')
    if (answer.status !== 402) return `${answer.status} ${answer.text}`
    return field === '' ? 'native' : (field.split(' ')[0] ?? '')
  }
  const unknown = '400 {"error":"unknown payment protocol"}'
  const long = `lightning/charge, ${'x/y, '.repeat(1000)}`
  const rows: [flow: string, headers: Record<string, string | string[]>][] = [
    ['native', {}],
    ['Payment', { 'x-payment-protocol': 'payment' }],
    ['Payment', { 'x-payment-protocol': 'PAYMENT' }],
    ['Payment', { 'x-payment-protocol': ' Payment\t' }],
    ['L402', { 'x-payment-protocol': 'l402' }],
    ['L402', { 'x-payment-protocol': 'L402' }],
    [unknown, { 'x-payment-protocol': 'native' }],
    [unknown, { 'x-payment-protocol': 'x402' }],
    [unknown, { 'x-payment-protocol': '' }],
    [unknown, { 'x-payment-protocol': 'payment, l402' }],
    [unknown, { 'x-payment-protocol': ['payment', 'l402'] }],
    [unknown, { 'x-payment-protocol': 'native', 'accept-payment': 'lightning/charge' }],
    ['Payment', { 'accept-payment': 'lightning/charge' }],
    ['Payment', { 'accept-payment': '*/*' }],
    ['Payment', { 'accept-payment': '*/charge' }],
    ['Payment', { 'accept-payment': 'lightning/*;q=0.1' }],
    ['Payment', { 'accept-payment': ['tempo/charge', 'lightning/charge'] }],
    ['Payment', { 'accept-payment': 'tempo/charge;q=1, lightning/charge;q=0.001' }],
    ['native', { 'accept-payment': 'tempo/charge' }],
    ['native', { 'accept-payment': 'lightning/session' }],
    ['native', { 'accept-payment': '*/*, lightning/charge;q=0' }],
    ['native', { 'accept-payment': 'lightning/charge;q=2' }],
    ['native', { 'accept-payment': 'lightning charge' }],
    ['native', { 'accept-payment': '' }],
    ['native', { 'accept-payment': long }],
    ['L402', { 'accept-authenticate': 'L402' }],
    ['L402', { 'accept-authenticate': 'lsat' }],
    ['L402', { 'accept-authenticate': 'Basic, L402' }],
    ['native', { 'accept-authenticate': 'Payment' }],
    ['Payment', { 'accept-authenticate': 'L402', 'accept-payment': 'lightning/charge' }],
    ['L402', { 'accept-authenticate': 'L402', 'accept-payment': 'tempo/charge' }],
    ['L402', { 'x-payment-protocol': 'l402', 'accept-payment': 'lightning/charge' }],
    ['Payment', { 'x-payment-protocol': 'payment', 'accept-authenticate': 'L402' }],
    ['native', { authorization: 'Bearer catch_owner_0' }],
    ['native', { authorization: 'Basic Og==' }],
    ['Payment', { authorization: 'Bearer x', 'x-payment-protocol': 'payment' }],
    ['Payment', { authorization: 'Payment x' }],
    ['Payment', { authorization: 'payment x', 'x-payment-protocol': 'l402' }],
    ['Payment', { authorization: 'PAYMENT x', 'accept-authenticate': 'L402' }],
    ['Payment', { authorization: ['Bearer x', 'Payment x'] }],
    ['Payment', { authorization: ['L402 x', 'Payment x'] }],
    [unknown, { authorization: 'Payment x', 'x-payment-protocol': 'native' }],
  ]
  for (const [flow, headers] of rows) {
    assert.equal(flowOf(await purchase(server, { headers })), flow, JSON.stringify(headers))
  }
})

test('a native 402 has no challenge, and no other answer has one either', async (t) => {
  const server = await startShop(t)
  const native = await purchase(server, {})
  assert.equal(native.status, 402)
  assert.deepEqual(native.lines('www-authenticate'), [])
  const refused = await purchase(server, { protocol: 'payment', body: '{}' })
  assertError(refused, '400 invalid request body')
  const keyless = await purchase(server, { protocol: 'payment', key: 'short' })
  assertError(keyless, '400 invalid idempotency key')
})

test('the receipt of a paid repeat names its challenge and its payment, and no preimage', async (t) => {
  const server = await startShop(t)
  const { key, authorization, challenge, paymentHash, preimage } = await openOrderVia(
    server,
    PAYMENT,
  )
  const before = Math.floor(server.clock.now() / 1000) * 1000
  const answer = await purchase(server, { key, authorization })
  assert.deepEqual(answer.lines('cache-control'), ['private, no-store'])
  const [receipt = '', ...more] = answer.lines('payment-receipt')
  assert.deepEqual(more, [])
  const text = Buffer.from(receipt, 'base64url').toString('utf8')
  assert.equal(receipt, base64url(utf8(jcs(JSON.parse(text) as Json))), 'canonical, no padding')
  const { timestamp } = JSON.parse(text) as { timestamp: string }
  assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.ok(Date.parse(timestamp) >= before && Date.parse(timestamp) <= server.clock.now())
  const expected = {
    challengeId: paymentChallengeOf(challenge).id,
    method: 'lightning',
    reference: paymentHash,
    status: 'success' as const,
    timestamp,
  }
  assert.deepEqual(JSON.parse(text), expected)
  assert.deepEqual(decodeReceipt(receipt), expected)
  assert.ok(!text.includes(preimage))

  // The time is that of the settlement, whenever it is told.
  server.clock.advance(60_000)
  const again = await purchase(server, { key, authorization })
  assert.deepEqual(again.lines('payment-receipt'), [receipt])
})

test('only a Payment credential gets a receipt', async (t) => {
  const server = await startShop(t)
  const { key, authorization } = await paidOrderVia(server, PAYMENT)
  capabilityOf(await purchase(server, { key, authorization }))
  for (const ask of [{}, { protocol: 'payment' }, { protocol: 'l402' }]) {
    const answer = await purchase(server, { key, ...ask })
    capabilityOf(answer)
    assert.deepEqual(answer.lines('payment-receipt'), [])
    assert.deepEqual(answer.lines('cache-control'), ['no-store'])
  }
})

test('any spelling of a Payment credential is taken', async (t) => {
  const server = await startShop(t)
  const order = await openOrderVia(server, PAYMENT)
  const { key, preimage } = order
  const challenge = paymentChallengeOf(order.challenge)
  const payload = { preimage }
  const { digest: _, ...withoutDigest } = challenge
  const plain = (value: object): string => base64url(utf8(JSON.stringify(value)))
  const token = plain({ challenge, payload })
  const padded = Buffer.from(`${JSON.stringify({ challenge, payload })} `).toString('base64')
  const rows: Record<string, string> = {
    'canonical JSON': `Payment ${base64url(utf8(jcs({ challenge, payload } as unknown as Json)))}`,
    'the order of its members': `Payment ${plain({ payload, challenge })}`,
    'spaces in the JSON': `Payment ${base64url(utf8(JSON.stringify({ challenge, payload }, null, 2)))}`,
    padding: `Payment ${padded.replaceAll('+', '-').replaceAll('/', '_')}`,
    'the scheme in lower case': `payment ${token}`,
    'the scheme in upper case': `PAYMENT ${token}`,
    'more spaces': `Payment   ${token}  `,
    'no digest, as some clients do': `Payment ${plain({ challenge: withoutDigest, payload })}`,
    'members that we do not know': `Payment ${plain({
      challenge: { ...challenge, color: 'blue' },
      payload: { preimage, fee: 1 },
      source: 'did:key:z6Mk',
    })}`,
  }
  const texts = new Set<string>()
  const receipts = new Set<string>()
  for (const [note, authorization] of Object.entries(rows)) {
    const answer = await purchase(server, { key, authorization })
    assert.equal(answer.status, 200, note)
    texts.add(answer.text)
    receipts.add(answer.lines('payment-receipt').join())
  }
  assert.equal(texts.size, 1)
  assert.equal(receipts.size, 1)
  const beside = await purchase(server, { key, authorization: ['Bearer x', order.authorization] })
  assert.equal(beside.status, 200, 'beside another scheme')
})

test('every Payment credential that is not right is refused, each for its reason, and loses nothing', async (t) => {
  const server = await startShop(t)
  const order = await openOrderVia(server, PAYMENT)
  const other = await openOrderVia(server, PAYMENT)
  const { key, preimage } = order
  const challenge = paymentChallengeOf(order.challenge)
  const theirs = paymentChallengeOf(other.challenge)
  const token = (value: unknown): string => `Payment ${base64url(utf8(JSON.stringify(value)))}`
  // With the right preimage it would be proof of the payment, whatever else is wrong with it.
  const nothing = { preimage: '00'.repeat(32) }
  const pay = (changes: object, payload: unknown = nothing): string =>
    token({ challenge: { ...challenge, ...changes }, payload })
  const without = (member: string): string =>
    token({
      challenge: Object.fromEntries(Object.entries(challenge).filter(([name]) => name !== member)),
      payload: nothing,
    })
  const request = (change: (request: Record<string, unknown>) => object): string => {
    const decoded = JSON.parse(Buffer.from(challenge.request, 'base64url').toString('utf8'))
    return base64url(utf8(JSON.stringify({ ...decoded, ...change(decoded) })))
  }
  const good = order.authorization
  const malformed = {
    type: `${PROBLEMS}/malformed-credential`,
    title: 'Malformed Credential',
    lightningType: `${PROBLEMS}/lightning/malformed-credential`,
    detail: 'The Authorization header holds no readable Payment credential.',
  }
  const invalid = {
    type: `${PROBLEMS}/invalid-challenge`,
    title: 'Invalid Challenge',
    lightningType: `${PROBLEMS}/lightning/unknown-challenge`,
    detail: 'The credential belongs to another request, or to none of ours.',
  }
  const failed = {
    type: `${PROBLEMS}/verification-failed`,
    title: 'Verification Failed',
    lightningType: `${PROBLEMS}/lightning/invalid-preimage`,
    detail: 'The preimage does not belong to the invoice.',
  }
  const rows: [note: string, authorization: string | string[], problem: object][] = [
    ['nothing after the scheme', 'Payment', malformed],
    ['a space after the scheme', 'Payment ', malformed],
    ['no base64url', 'Payment !!!', malformed],
    ['standard base64', `Payment ${Buffer.from('{"a":"\u00ff?>"}').toString('base64')}`, malformed],
    ['too much padding', `${good}===`, malformed],
    ['bits that no encoder leaves', 'Payment e31', malformed],
    ['parameters', `Payment id="${challenge.id}", preimage="${preimage}"`, malformed],
    ['no JSON', `Payment ${base64url(utf8('hello'))}`, malformed],
    ['half of it', good.slice(0, good.length / 2), malformed],
    ['bytes that are no UTF-8', 'Payment gICA', malformed],
    ['an array', token([{ challenge, payload: { preimage } }]), malformed],
    ['null', token(null), malformed],
    ['a string', token('credential'), malformed],
    ['nothing in it', token({}), malformed],
    ['no challenge', token({ payload: { preimage } }), malformed],
    ['a challenge that is a text', token({ challenge: 'x', payload: { preimage } }), malformed],
    ['no payload', token({ challenge }), malformed],
    ['a payload that is a list', token({ challenge, payload: [preimage] }), malformed],
    ['no preimage', pay({}, {}), malformed],
    ['a preimage of another payment in upper case', pay({}, { preimage: 'AB'.repeat(32) }), failed],
    ['a short preimage', pay({}, { preimage: preimage.slice(2) }), malformed],
    ['a long preimage', pay({}, { preimage: `${preimage}00` }), malformed],
    ['a preimage that is a number', pay({}, { preimage: 7 }), malformed],
    ...['id', 'realm', 'method', 'intent', 'request'].flatMap(
      (member): [string, string, object][] => [
        [`no ${member}`, without(member), malformed],
        [`a number as ${member}`, pay({ [member]: 1 }), malformed],
        [`half a character in ${member}`, pay({ [member]: '\ud800' }), malformed],
      ],
    ),
    ['an expiry that is a number', pay({ expires: 1_900_000_000 }), malformed],
    ['a digest that is null', pay({ digest: null }), malformed],
    ['the credential twice', [good, good], malformed],
    ['two credentials', [good, other.authorization], malformed],
    ['two in one line', `${good}, ${other.authorization}`, malformed],
    ['a comma after it', `${good},`, malformed],
    ['no expiry', without('expires'), invalid],
    ['another id', pay({ id: theirs.id }), invalid],
    ['an id of nobody', pay({ id: 'x' }), invalid],
    ['an empty id', pay({ id: '' }), invalid],
    ['another realm', pay({ realm: 'mayfly.example' }), invalid],
    ['the realm in capitals', pay({ realm: 'LOCALHOST' }), invalid],
    ['another method', pay({ method: 'tempo' }), invalid],
    ['another intent', pay({ intent: 'session' }), invalid],
    ['another request', pay({ request: theirs.request }), invalid],
    ['a smaller amount', pay({ request: request(() => ({ amount: '1' })) }), invalid],
    ['the same request, spelled anew', pay({ request: `${challenge.request}=` }), invalid],
    ['a request that is none', pay({ request: 'e30' }), invalid],
    ['a later expiry', pay({ expires: '2099-01-01T00:00:00Z' }), invalid],
    ['an expiry spelled anew', pay({ expires: challenge.expires?.replace('Z', '.000Z') }), invalid],
    ['another digest', pay({ digest: `sha-256=:${'A'.repeat(43)}=:` }), invalid],
    ['an empty digest', pay({ digest: '' }), invalid],
    [
      'a digest in the other spelling',
      pay({ digest: challenge.digest?.replace('=:', '=') }),
      invalid,
    ],
    ['an opaque member that we never issue', pay({ opaque: 'e30' }), invalid],
    ['a description that we never issue', pay({ description: 'A better deal' }), invalid],
    ['a header that we never issue', pay({ header: 'Payment-Authorization' }), invalid],
    ['a delimiter in a member', pay({ realm: 'localhost|lightning', method: 'x' }), invalid],
    [
      "another order's challenge and this one's preimage",
      token({
        challenge: theirs,
        payload: { preimage },
      }),
      failed,
    ],
    ['the preimage of another order', pay({}, { preimage: other.preimage }), failed],
    ['a preimage of nothing', pay({}, { preimage: '00'.repeat(32) }), failed],
    ['the payment hash as preimage', pay({}, { preimage: order.paymentHash }), failed],
  ]
  const [field] = order.challenge.lines('www-authenticate')
  const { challengeId, request: asked, ...quoted } = JSON.parse(order.challenge.text)
  for (const [note, authorization, problem] of rows) {
    const answer = await purchase(server, { key, authorization })
    assert.equal(answer.status, 402, note)
    assert.deepEqual(answer.lines('www-authenticate'), [field], note)
    assert.deepEqual(answer.lines('content-type'), ['application/problem+json; charset=utf-8'])
    assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
    assert.deepEqual(answer.lines('payment-receipt'), [], note)
    assert.deepEqual(
      JSON.parse(answer.text),
      {
        ...quoted,
        ...problem,
        status: 402,
        error: 'invalid payment credential',
        challengeId,
        request: asked,
      },
      note,
    )
  }
  assert.deepEqual(await books(server), { orders: 2, invoices: 2, settled: 0, inboxes: 0 })
  capabilityOf(await purchase(server, { key, authorization: good }))
  capabilityOf(await purchase(server, { key: other.key, authorization: other.authorization }))
})

test('a credential that anybody has changed still proves the payment, and brings nothing', async (t) => {
  const server = await startShop(t)
  const rows = [
    { realm: 'mayfly.example' },
    { expires: '2099-01-01T00:00:00Z' },
    { id: 'x' },
    { digest: '' },
  ]
  for (const changes of rows) {
    for (const key of [randomUUID(), null]) {
      const order = await openOrderVia(server, PAYMENT)
      const challenge = { ...paymentChallengeOf(order.challenge), ...changes }
      const { preimage } = order
      const token = base64url(utf8(JSON.stringify({ challenge, payload: { preimage } })))
      const answer = await purchase(server, {
        key: key ?? order.key,
        authorization: `Payment ${token}`,
      })
      assertBareRefusal(answer, PAYMENT, JSON.stringify(changes))
      capabilityOf(await purchase(server, order.ask))
    }
  }
  assert.deepEqual(await books(server), { orders: 8, invoices: 8, settled: 8, inboxes: 8 })
})

test('a bad credential of a first request is answered with that request’s own challenge', async (t) => {
  const server = await startShop(t)
  const key = randomUUID()
  const answer = await purchase(server, { key, authorization: 'Payment bad' })
  assert.equal(JSON.parse(answer.text).error, 'invalid payment credential')
  const asked = await purchase(server, { key, protocol: 'payment' })
  assert.deepEqual(answer.lines('www-authenticate'), asked.lines('www-authenticate'))
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
})

test('a bad credential never reaches what its key has bought', async (t) => {
  const server = await startShop(t)
  const { key, authorization } = await paidOrderVia(server, PAYMENT)
  const first = await purchase(server, { key, authorization })
  for (const bad of ['Payment bad', `${authorization}A`]) {
    assertBareRefusal(await purchase(server, { key, authorization: bad }), PAYMENT)
  }
  assert.equal((await purchase(server, { key, authorization })).text, first.text)
})

test('quotes are limited, and a refusal by the limit is no challenge', async (t) => {
  const server = await startLimited(t)
  const ask: Ask = { protocol: 'payment' }
  const { key, authorization } = await openOrderVia(server, PAYMENT)
  const refused = await purchase(server, ask)
  assert.equal(refused.status, 429)
  assert.deepEqual(refused.lines('www-authenticate'), [])
  assert.match(refused.lines('retry-after').join(), /^[1-9]\d*$/)
  capabilityOf(await purchase(server, { key, authorization }))
})

/** A shop that makes one quote a minute. */
async function startLimited(t: Parameters<typeof startShop>[0]): Promise<TestServer> {
  const file = `${await temporaryFolder(t)}/rates.json`
  await writeFile(file, '{"quote": {"perMinute": 1, "burst": 1}}')
  return startShop(t, { MAYFLY_RATE_LIMITS: file })
}
