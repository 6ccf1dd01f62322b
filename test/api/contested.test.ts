/** What a stranger who knows a key meets over HTTP, and how the one who has paid proves it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type Answer, type Ask, openOrder, poll, purchase, quoteOf } from '../support/buying.ts'
import { limited } from '../support/limits.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import {
  assertError,
  capabilityOf,
  L402,
  PAYMENT,
  paidOrderVia,
  use,
} from '../support/wallet-flow.ts'
import { A_BODY, openWhisperOrder, purchaseWhisper } from '../support/whisper.ts'

const VICTIM = '203.0.113.1'
const THIEF = '198.51.100.9'
const KEY = 'order-0001'
const PROOF_REQUIRED = '404 proof of payment required'

/** Opened by a thief, asked for by the victim, and paid. */
async function aStolenOrder(server: TestServer) {
  const ask: Ask = { key: KEY, from: VICTIM }
  const { orderId, bolt11 } = quoteOf(await purchase(server, { ...ask, from: THIEF }))
  const shown = await purchase(server, ask)
  assert.equal(JSON.parse(shown.text).proofRequired, true)
  const pending = await poll(server, orderId, {})
  assert.deepEqual([pending.status, JSON.parse(pending.text).proofRequired], [402, true])
  return { ask, orderId, preimage: await server.pay(bolt11) }
}

test('whoever has paid an order that a thief opened proves it with the preimage, and the thief gets nothing', async (t) => {
  const server = await startServer(t, {
    MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    MAYFLY_LOG_LEVEL: 'debug',
  })
  const { ask, orderId, preimage } = await aStolenOrder(server)
  const keyed = { 'idempotency-key': KEY }
  const proof = { 'payment-preimage': preimage }
  for (const from of [THIEF, VICTIM]) {
    assertError(await purchase(server, { ...ask, from }), PROOF_REQUIRED)
    for (const headers of [{}, keyed, proof]) {
      assertError(
        await poll(server, orderId, { 'x-forwarded-for': from, ...headers }),
        PROOF_REQUIRED,
      )
    }
  }
  const twoLines = { 'payment-preimage': [preimage, '00'.repeat(32)] }
  assertError(await purchase(server, { ...ask, headers: twoLines }), PROOF_REQUIRED)
  const first = await purchase(server, { ...ask, headers: proof })
  capabilityOf(first)
  assert.equal((await poll(server, orderId, { ...keyed, ...proof })).text, first.text)
  const elsewhere = { ...ask, from: '2001:db8::7', headers: proof }
  assert.equal((await purchase(server, elsewhere)).text, first.text)
  assertError(await purchase(server, ask), PROOF_REQUIRED)

  const [row] = await query(server, 'select opened_by from purchase_order')
  const mark = String(row?.opened_by)
  assert.match(mark, /^[0-9a-f]{32}$/)
  const log = server.logged.join('')
  for (const secret of [mark, THIEF, preimage, KEY]) assert.ok(!log.includes(secret), secret)
})

test('a preimage that opens nothing has no effect, and is limited like a bad token', async (t) => {
  const server = await limited(
    t,
    { badBearer: { perMinute: 3, burst: 3 } },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
  )
  const { ask, orderId, preimage } = await aStolenOrder(server)
  const wrong = ['00'.repeat(32), 'x', preimage.slice(2)]
  const keyed = { 'idempotency-key': KEY }
  for (const guess of wrong) {
    const headers = { ...keyed, 'x-forwarded-for': THIEF, 'payment-preimage': guess }
    assertError(await poll(server, orderId, headers), PROOF_REQUIRED)
  }
  const guess = { 'payment-preimage': '11'.repeat(32) }
  const refused: Answer[] = [
    await poll(server, orderId, { 'x-forwarded-for': THIEF, ...guess }),
    await purchase(server, { ...ask, from: THIEF, headers: guess }),
  ]
  for (const { status, lines } of refused) {
    assert.equal(status, 429)
    assert.match(lines('retry-after').join(), /^[1-9]\d*$/)
  }
  // Who brings the right one is held up by nobody, from the same address too.
  const proof = { ...keyed, 'x-forwarded-for': THIEF, 'payment-preimage': preimage }
  capabilityOf(await poll(server, orderId, proof))
})

test('a preimage of no payment is limited like a bad token under a new key, too', async (t) => {
  const server = await limited(t, { badBearer: { perMinute: 3, burst: 3 } })
  const guess = (preimage: string): Promise<Answer> =>
    purchase(server, { key: randomUUID(), headers: { 'payment-preimage': preimage } })
  for (const digits of ['00', '11', '22']) {
    assertError(await guess(digits.repeat(32)), '404 order not found')
  }
  assertError(await guess('33'.repeat(32)), '429 rate limited')
  // The preimage of an earlier purchase shows no guess: its buyer buys again.
  const { key, bolt11 } = await openOrder(server)
  const preimage = await server.pay(bolt11)
  capabilityOf(await purchase(server, { key }))
  assert.equal((await guess(preimage)).status, 402)
})

test('a stranger who floods an order by its guessed key keeps nobody out who proves the payment', async (t) => {
  const server = await limited(
    t,
    { poll: { perMinute: 1, burst: 4 } },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
  )
  for (const [i, flow] of [PAYMENT, L402].entries()) {
    const key = `order-000${i}`
    const order = await paidOrderVia(server, flow, { key, from: VICTIM })
    const flood = [0, 1, 2, 3, 4].map(() => purchase(server, { key, from: THIEF }))
    assert.ok((await Promise.all(flood)).some(({ status }) => status === 429))
    const proof = { 'payment-preimage': order.preimage }
    const polled = { 'idempotency-key': key, ...proof }
    const { publicId } = capabilityOf(await poll(server, order.orderId, polled))
    const proven: Ask[] = [{ key, headers: proof }, order.ask, { ...order.ask, key: randomUUID() }]
    for (const ask of proven) {
      assert.equal(
        capabilityOf(await purchase(server, { ...ask, from: VICTIM })).publicId,
        publicId,
      )
    }
    // Proofs are limited as well, and by themselves.
    assert.equal((await poll(server, order.orderId, polled)).status, 429)
  }
})

test('a credential of another purchase, which is over, uses up no proofs of the order whose key is guessed', async (t) => {
  const server = await limited(
    t,
    { poll: { perMinute: 1, burst: 4 } },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
  )
  for (const [i, flow] of [PAYMENT, L402].entries()) {
    const past = await paidOrderVia(server, flow, { from: THIEF })
    await use(server, await purchase(server, past.ask))
    const order = await paidOrderVia(server, flow, { key: `order-000${i}`, from: VICTIM })
    const flood = { ...past.ask, key: order.key }
    for (const _ of [1, 2, 3, 4, 5]) await purchase(server, flood)
    capabilityOf(await purchase(server, order.ask))
  }
})

test('a flood that guesses a key keeps no proof out of a purchase whose body is large', async (t) => {
  const server = await limited(
    t,
    { poll: { perMinute: 1, burst: 4 } },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
  )
  const ask = { key: KEY, body: A_BODY, from: VICTIM }
  const preimage = await server.pay((await openWhisperOrder(server, ask)).bolt11)
  const flood = [0, 1, 2, 3, 4].map(() => purchaseWhisper(server, { ...ask, from: THIEF }))
  assert.ok((await Promise.all(flood)).some(({ status }) => status === 429))
  const { status } = await purchaseWhisper(server, {
    ...ask,
    headers: { 'payment-preimage': preimage },
  })
  assert.equal(status, 200)
})
