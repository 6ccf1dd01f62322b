import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { isId, isToken } from '../../src/lib/ids.ts'
import {
  DAY,
  DELIVERED,
  deliveredOrder,
  idempotencyKey,
  NOT_FOUND,
  openOrder,
  paidOrder,
  poll,
  purchase,
  settlement,
} from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'

suite('a delivery', () => {
  const theServer = shareServer()

  test('a poll says when to ask again, and the first one after the payment delivers the whole capability', async () => {
    const server = await theServer()
    const { orderId, bolt11, expiresAt: until, ...order } = await openOrder(server)
    const url = `${server.url}/api/payments/${orderId}`
    const unpaid = await fetch(url)
    assert.equal(unpaid.status, 402)
    assert.deepEqual(await unpaid.json(), { settled: false, expiresAt: until })
    assert.equal(unpaid.headers.get('retry-after'), '1')
    assert.equal(unpaid.headers.get('cache-control'), 'no-store')
    assert.equal(unpaid.headers.get('www-authenticate'), null)
    const settled = settlement(server, order)
    await server.pay(bolt11)
    await settled
    const answer = await fetch(url)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    const body = (await answer.json()) as { settled: true; resource: CatchCapability }
    const { publicId, ownerToken, ingestToken, expiresAt } = body.resource
    assert.deepEqual(body, {
      settled: true,
      resource: { product: 'catch', publicId, ownerToken, ingestToken, expiresAt },
    })
    assert.ok(isId('catch', publicId))
    assert.ok(isToken('catch_owner', ownerToken))
    assert.ok(isToken('catch_ingest', ingestToken))
    const status = await server.mayfly.catch(body.resource).status()
    assert.equal(status.expiresAt, expiresAt)
    assert.equal(Date.parse(expiresAt) - Date.parse(status.createdAt), DAY)
  })

  test('an order that nobody opened is not found, by an id of any form and length', async () => {
    const server = await theServer()
    const ids = ['order_0000000000000000000000', 'x', '%00', 'order_', 'a%2Fb', "'", '%F0%9F']
    for (const id of ids) assert.equal((await poll(server, id)).status, 404, id)
    assert.deepEqual(await poll(server, 'x'.repeat(101)), NOT_FOUND)
    assert.deepEqual(await poll(server, 'x'.repeat(20_000)), NOT_FOUND)
  })

  test('a prefetch never takes the delivery', async () => {
    const server = await theServer()
    const { orderId, expiresAt } = await paidOrder(server)
    for (const purpose of ['prefetch', 'prefetch;prerender', 'prefetch; anonymous-client-ip']) {
      const answer = await poll(server, orderId, { 'sec-purpose': purpose })
      assert.deepEqual(answer, { status: 402, text: JSON.stringify({ settled: false, expiresAt }) })
    }
    assert.equal((await poll(server, orderId)).status, 200)
  })

  test('a change of the secret between any two steps changes nothing for the buyer', async (t) => {
    const [old, fresh] = ['11'.repeat(32), '22'.repeat(32)]
    const environment = { MAYFLY_SECRET: old }
    const server = await startServer(t, environment)
    const quoted = await purchase(server, { key: 'order-01' })
    const open = await openOrder(server)
    const uncollected = await paidOrder(server)
    const delivered = await deliveredOrder(server)
    environment.MAYFLY_SECRET = `${fresh},${old}`
    await server.restart()

    assert.deepEqual(
      await purchase(server, { key: 'order-01' }),
      quoted,
      'a key that counts at its address',
    )
    assert.deepEqual(await purchase(server, { key: open.key }), open.answer)
    const settled = settlement(server, open)
    await server.pay(open.bolt11)
    await settled
    for (const { orderId, key } of [open, uncollected]) {
      const first = await poll(server, orderId)
      assert.equal(first.status, 200, first.text)
      assert.deepEqual(await poll(server, orderId, idempotencyKey(key)), first)
      assert.deepEqual(await purchase(server, { key }), first)
    }
    const again = await poll(server, delivered.orderId, idempotencyKey(delivered.key))
    assert.deepEqual(again, { status: 200, text: delivered.text })
    assert.equal((await server.mayfly.catch(delivered.inbox).status()).status, 'active')
    assert.deepEqual(await purchase(server, { key: delivered.key }), DELIVERED)
    assert.equal((await query(server, 'select * from simulator_invoice')).length, 4)

    // What was sealed is sealed anew: of the old secret only the names of its orders are needed.
    environment.MAYFLY_SECRET = fresh
    await assert.rejects(server.restart(), /is not the one that 3 open or uncollected orders/)
  })
})
