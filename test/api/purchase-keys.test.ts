import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { books, openOrder, payAndSettle, purchase } from '../support/buying.ts'
import { startServer, type TestServer } from '../support/server.ts'

test('a key may have 8 to 128 characters, and spaces inside', async (t) => {
  const server = await startServer(t)
  for (const key of ['8-visibl', 'k'.repeat(128), 'my first order']) {
    assert.equal((await purchase(server, { key })).status, 402, key)
  }
})

test('a repeat with the same key is the same quote, byte for byte, and one invoice', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const first = await purchase(server, { key })
  const again = await purchase(server, { key })
  assert.equal(again.status, 402)
  assert.equal(again.text, first.text)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('a key is spent on its request: another plan or another body is refused', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const quote = await openOrder(server, { key })
  const reused = JSON.stringify({ error: 'idempotency key reused with a different request' })
  const bodies = ['{"planId":"long"}', '{ "planId": "spark" }']
  for (const body of bodies) {
    const answer = await purchase(server, { key, body })
    assert.deepEqual([answer.status, answer.text], [400, reused])
  }
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })

  await payAndSettle(server, quote)
  assert.equal((await purchase(server, { key })).status, 200)
  for (const body of bodies) {
    const answer = await purchase(server, { key, body })
    assert.deepEqual([answer.status, answer.text], [400, reused], 'after the delivery too')
  }
})

test('a broken repeat is refused as such, whatever its key once bought', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  await openOrder(server, { key })
  const answer = await purchase(server, { key, body: '{"planId":"mega"}' })
  assert.equal(answer.text, '{"error":"invalid plan"}')
})

test('50 purchases at once with one key become one order and one invoice', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const answers = await Promise.all(Array.from({ length: 50 }, () => purchase(server, { key })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([402]))
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('one plan wins where 50 different requests come at once with one key, and the other is refused', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const plans = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? 'spark' : 'long'))
  const answers = await Promise.all(
    plans.map((planId) => purchase(server, { key, body: JSON.stringify({ planId }) })),
  )
  const quotes = answers.filter(({ status }) => status === 402)
  assert.equal(quotes.length, 25)
  assert.equal(new Set(quotes.map(({ text }) => text)).size, 1)
  assert.equal(answers.filter(({ status }) => status === 400).length, 25)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('50 purchases at once with keys of their own become 50 orders and 50 invoices', async (t) => {
  const server = await startServer(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => openOrder(server, {})))
  assert.equal(new Set(answers.map(({ orderId }) => orderId)).size, 50)
  assert.equal(new Set(answers.map(({ paymentHash }) => paymentHash)).size, 50)
  assert.deepEqual(await count(server), { orders: 50, invoices: 50 })
})

test('one key is one order and one invoice, wherever it comes from', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  for (const key of ['order-01', '12345678', 'd41d8cd98f00b204e9800998ecf8427e', randomUUID()]) {
    const before = await count(server)
    const mine = await openOrder(server, { key, from: '203.0.113.1' })
    for (const from of ['203.0.113.2', '2001:db8::1', '203.0.113.1']) {
      assert.equal((await openOrder(server, { key, from })).paymentHash, mine.paymentHash, key)
    }
    const { orders, invoices } = await count(server)
    assert.deepEqual([orders - before.orders, invoices - before.invoices], [1, 1], key)
  }
})

async function count(server: TestServer): Promise<{ orders: number; invoices: number }> {
  const { orders, invoices } = await books(server)
  return { orders, invoices }
}
