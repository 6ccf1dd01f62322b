import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type Ask, poll, purchase, quoteOf } from '../support/buying.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import {
  HOUR,
  L402,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
} from '../support/wallet-flow.ts'

/** A purchase of each product. */
const PRODUCTS: Record<string, () => Ask> = {
  catch: () => ({}),
  pulse: () => ({ target: '/api/payments/pulse' }),
  whisper: () => ({
    target: '/api/payments/whisper',
    body: randomBytes(32).toString('base64'),
    headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
  }),
}

test('whoever reads the log cannot collect an order: no line has the id of one, in any flow, of any product', async (t) => {
  const server = await startShop(t, { MAYFLY_LOG_LEVEL: 'trace' })
  const keys: string[] = []
  const aKey = (): string => keys[keys.push(randomUUID()) - 1] ?? ''
  for (const product of Object.values(PRODUCTS)) {
    // Paid by each flow, and repeated.
    const native = { ...product(), key: aKey() }
    const quote = quoteOf(await purchase(server, native))
    await poll(server, quote.orderId)
    await server.pay(quote.bolt11)
    await poll(server, quote.orderId)
    assert.equal((await purchase(server, native)).status, 200)
    for (const flow of [PAYMENT, L402]) {
      const { ask } = await paidOrderVia(server, flow, { ...product(), key: aKey() })
      assert.equal((await purchase(server, ask)).status, 200)
      // Proven by its credential before anybody was paid, and wrong once.
      const unpaid = await openOrderVia(server, flow, { ...product(), key: aKey() })
      await purchase(server, { ...unpaid.ask, body: 'another body' })
      assert.equal((await purchase(server, unpaid.ask)).status, 200)
    }
    // Lost by the node, refused by the product, and never paid.
    const lost = quoteOf(await purchase(server, { ...product(), key: aKey() }))
    await query(server, 'delete from simulator_invoice where payment_hash = $1', lost.paymentHash)
    await poll(server, lost.orderId)
    quoteOf(await purchase(server, { ...product(), key: aKey() }))
  }
  const owed = quoteOf(await purchase(server, { ...PRODUCTS.whisper?.(), key: aKey() }))
  await query(server, 'delete from whisper_reservation where order_id = $1', owed.orderId)
  await server.pay(owed.bolt11)
  await poll(server, owed.orderId)
  server.clock.advance(HOUR)
  const rows = await query(server, 'select order_id, payment_hash, state from purchase_order')
  for (const { order_id: orderId } of rows) await poll(server, String(orderId))
  await server.restart()
  await server.stop()

  assert.deepEqual(
    [...new Set(logged(server).map(({ event }) => String(event)))]
      .filter((event) => event.startsWith('order.'))
      .sort(),
    [
      ...['order.dead', 'order.delivered', 'order.invoice_unknown', 'order.paid_unfulfilled'],
      ...['order.quoted', 'order.settled'],
    ],
  )
  const log = server.logged.join('')
  assert.equal(rows.length, keys.length)
  for (const { order_id: orderId } of rows) assert.ok(!log.includes(String(orderId)))
  assert.doesNotMatch(log, /order_[0-9A-Za-z]{22}/)
  for (const key of keys) assert.ok(!log.includes(key))
  // Every line about an order says which one, by what the operator can ask for.
  const hashes = new Set(rows.map((row) => String(row.payment_hash)))
  for (const line of logged(server).filter(({ event }) => String(event).startsWith('order.'))) {
    assert.ok(hashes.has(String(line.paymentHash)), JSON.stringify(line))
  }
})

function logged(server: TestServer): Record<string, unknown>[] {
  return server.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
}
