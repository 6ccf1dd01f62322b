import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { base64url, utf8 } from '../../src/lib/bytes.ts'
import { type Json, jcs } from '../../src/lib/jcs.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import {
  type Answer,
  books,
  paymentChallengeOf,
  purchase,
  quoteOf,
  SPARK,
} from '../support/buying.ts'
import {
  assertBareRefusal,
  capabilityOf,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
  use,
} from '../support/wallet-flow.ts'
import { walletFlowContract } from './wallet-flow.ts'

const PROBLEMS = 'https://paymentauth.org/problems'

walletFlowContract('Payment', PAYMENT)

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
  // test/protocol/accept.test.ts has every other preference.
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
    ['native', { 'accept-payment': 'tempo/charge' }],
    ['native', { 'accept-payment': '*/*, lightning/charge;q=0' }],
    ['native', { 'accept-payment': long }],
    ['L402', { 'accept-authenticate': 'L402' }],
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

test('the receipt of a paid repeat names its challenge and its payment, and no preimage', async (t) => {
  const server = await startShop(t)
  const { key, authorization, challenge, paymentHash, preimage } = await openOrderVia(
    server,
    PAYMENT,
  )
  const before = Math.floor(server.now() / 1000) * 1000
  const answer = await purchase(server, { key, authorization })
  assert.deepEqual(answer.lines('cache-control'), ['private, no-store'])
  const [receipt = '', ...more] = answer.lines('payment-receipt')
  assert.deepEqual(more, [])
  const text = Buffer.from(receipt, 'base64url').toString('utf8')
  assert.equal(receipt, base64url(utf8(jcs(JSON.parse(text) as Json))), 'canonical, no padding')
  const { timestamp } = JSON.parse(text) as { timestamp: string }
  assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.ok(Date.parse(timestamp) >= before && Date.parse(timestamp) <= server.now())
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

test('a credential of another purchase, beside the preimage of this one, gets no receipt of the two', async (t) => {
  const server = await startShop(t)
  const { ask, authorization } = await paidOrderVia(server, PAYMENT)
  await use(server, await purchase(server, ask))
  const { key, preimage } = await paidOrderVia(server, PAYMENT)
  const headers = { 'payment-preimage': preimage }
  const answer = await purchase(server, { key, authorization, headers })
  capabilityOf(answer)
  assert.deepEqual(answer.lines('payment-receipt'), [])
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
  // test/vectors/payment-auth.json has every other way to be wrong.
  const rows: [note: string, authorization: string | string[], problem: object][] = [
    ['nothing after the scheme', 'Payment', malformed],
    ['half of it', good.slice(0, good.length / 2), malformed],
    ['no challenge', token({ payload: { preimage } }), malformed],
    ['a short preimage', pay({}, { preimage: preimage.slice(2) }), malformed],
    ['half a character in a member', pay({ realm: '\ud800' }), malformed],
    ['the credential twice', [good, good], malformed],
    ['two credentials', [good, other.authorization], malformed],
    ['another id', pay({ id: theirs.id }), invalid],
    ['another request', pay({ request: theirs.request }), invalid],
    ['a smaller amount', pay({ request: request(() => ({ amount: '1' })) }), invalid],
    ['a later expiry', pay({ expires: '2099-01-01T00:00:00Z' }), invalid],
    ['another digest', pay({ digest: `sha-256=:${'A'.repeat(43)}=:` }), invalid],
    ['a delimiter in a member', pay({ realm: 'localhost|lightning', method: 'x' }), invalid],
    [
      "another order's challenge and this one's preimage",
      token({ challenge: theirs, payload: { preimage } }),
      failed,
    ],
    ['the preimage of another order', pay({}, { preimage: other.preimage }), failed],
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
