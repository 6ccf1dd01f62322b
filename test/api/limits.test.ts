import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { openOrder, purchase } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { type Answer, ask, LIMITED, limited, limitHeaders, short } from '../support/limits.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

test('nothing is limited where the limits are switched off, and no answer speaks of a limit', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'off' })
  for (let i = 0; i < 200; i++) {
    const answer = await ask(server, '/api/catalog')
    assert.equal(answer.status, 200)
    assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
  }
})

suite('an answer 429 spends nothing', () => {
  test('a purchase that gets 429 leaves no order and no invoice', async (t) => {
    for (const rates of [{ quote: { perMinute: 1, burst: 1 } }, { openOrders: 1 }]) {
      const server = await limited(t, rates)
      const first = await openOrder(server)
      const key = randomUUID()
      for (let i = 0; i < 3; i++) assert.deepEqual(short(await purchase(server, { key })), LIMITED)
      assert.deepEqual(await query(server, 'select order_id from purchase_order'), [
        { order_id: first.orderId },
      ])
      assert.equal((await query(server, 'select payment_hash from simulator_invoice')).length, 1)
      if (!rates.openOrders) continue
      // Room again, and the key is as good as new.
      await server.pay(first.bolt11)
      await ask(server, `/api/payments/${first.orderId}`)
      assert.equal((await purchase(server, { key })).status, 402)
    }
  })

  test('a poll that gets 429 does not deliver a paid order', async (t) => {
    const server = await limited(t, { poll: { perMinute: 60, burst: 1 } })
    const { orderId, bolt11 } = await openOrder(server)
    const poll = (headers = {}): Promise<Answer> =>
      ask(server, `/api/payments/${orderId}`, { headers })
    await server.pay(bolt11)
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    assert.equal((await poll({ 'sec-purpose': 'prefetch' })).status, 402)
    assert.equal((await poll()).status, 429)
    // The clock of the service, too, which says when a window that instances share is over.
    server.clock.advance(1_000)
    now += 1_000
    assert.equal((await poll()).status, 200)
  })

  test('a request that gets 429 is not stored, and its token not used', async (t) => {
    const server = await limited(t, { 'ingest.spark': { perMinute: 1, burst: 2 } })
    const key = randomUUID()
    const { orderId, bolt11 } = await openOrder(server, { key })
    await server.pay(bolt11)
    const bought = await purchase(server, { key })
    const { resource: inbox } = JSON.parse(bought.text) as { resource: CatchCapability }
    const authorized = { authorization: `Bearer ${inbox.ingestToken}` }
    for (let i = 0; i < 2; i++) await ask(server, `/c/${inbox.publicId}`)
    assert.deepEqual(
      short(await ask(server, `/c/${inbox.publicId}`, { headers: authorized })),
      LIMITED,
    )
    assert.equal((await query(server, 'select sequence from catch_event')).length, 2)

    const again = await ask(server, `/api/payments/${orderId}`, {
      headers: { 'idempotency-key': key },
    })
    assert.deepEqual([again.status, again.text], [200, bought.text], 'not sealed by the refusal')
    assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 2)
  })

  test('a body above the limit of the plan is refused for the rate first, and not read', async (t) => {
    const server = await limited(t, { 'ingest.spark': { perMinute: 1, burst: 1 } })
    const inbox = await anInbox(server, 'spark')
    await ask(server, `/c/${inbox.publicId}`)
    const body = 'x'.repeat(65_537)
    const answer = await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body })
    assert.equal(answer.status, 429)
  })
})

/** One address of an agents' network stands for many buyers, so it may open more orders. */
const EGRESS = {
  MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
  MAYFLY_EGRESS_NETWORKS: '192.0.2.0/24,2001:db8::/32',
}
const once = { perMinute: 1, burst: 1 }

test('a network of agents has a limit of its own on new orders, by key and by one URL, and no other has', async (t) => {
  const rates = { quote: once, quoteEgress: { perMinute: 2, burst: 2 } }
  const server = await limited(t, rates, EGRESS)
  for (const from of ['192.0.2.1', '192.0.2.200']) {
    const answer = await purchase(server, { from })
    assert.deepEqual([answer.status, limitHeaders(answer).policy], [402, '"quoteEgress";q=2;w=60'])
  }
  assert.deepEqual(short(await purchase(server, { from: '192.0.2.3' })), LIMITED)
  const headers = { 'x-forwarded-for': '2001:db8:1::1' }
  const byUrl = await ask(server, '/api/buy/catch/spark', { headers })
  assert.equal(limitHeaders(byUrl).policy, '"quoteEgress";q=2;w=60')
  const elsewhere = await purchase(server, { from: '198.51.100.1' })
  assert.deepEqual([elsewhere.status, limitHeaders(elsewhere).policy], [402, '"quote";q=1;w=60'])
  assert.deepEqual(short(await purchase(server, { from: '198.51.100.9' })), LIMITED)
})

test('a network of agents may have twelve times as many open orders as another one', async (t) => {
  const server = await limited(t, { openOrders: 1 }, EGRESS)
  for (let i = 0; i < 12; i++) {
    assert.equal((await purchase(server, { from: '192.0.2.1' })).status, 402)
  }
  assert.equal((await purchase(server, { from: '192.0.2.1' })).status, 429)
  for (const status of [402, 429]) {
    assert.equal((await purchase(server, { from: '198.51.100.1' })).status, status)
  }
})
