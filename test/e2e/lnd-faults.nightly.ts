/** Selling over LND while it is killed, frozen, cut off from the chain, away or the wrong one. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { After } from '../support/folder.ts'
import { missingNodes, startTestbed, type Testbed } from '../support/nodes/testbed.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query, type Stored } from '../support/store.ts'
import { until } from '../support/until.ts'
import {
  type Books,
  collect,
  countOrders,
  openBooks,
  pending,
  poll,
  purchase,
  quote,
  sellingOver,
  UNAVAILABLE,
  untilCheckout,
  untilSettled,
  useInbox,
} from './lnd-market.ts'

describe('selling over an LND in trouble', { skip: await missingNodes() }, () => {
  let testbed: Testbed
  let books: Books

  before(async () => {
    testbed = await startTestbed()
    books = openBooks(testbed.alice)
  })
  after(() => testbed?.close())

  const onAlice = (t: After) => sellingOver(t, testbed.alice)

  async function startAlice(): Promise<void> {
    await testbed.alice.start()
    await testbed.routesReady()
  }

  async function buy(server: TestServer) {
    const { orderId, bolt11 } = await quote(server.url)
    await testbed.pay(bolt11)
    return collect(server.url, orderId)
  }

  test('an order outlives kill -9 of the node, and is delivered when paid afterwards', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const order = await quote(server.url)
    await testbed.alice.kill()
    try {
      assert.deepEqual(await poll(server.url, order.orderId), pending(order))
      assert.deepEqual(await purchase(server.url, randomUUID()), UNAVAILABLE)
      await untilCheckout(server.url, false)
      assert.equal(await countOrders(server), 1)
    } finally {
      await startAlice()
    }
    await testbed.pay(order.bolt11)
    await useInbox(server.url, await collect(server.url, order.orderId))
    await untilCheckout(server.url, true)
    await useInbox(server.url, await buy(server))
    await books.balance(server)
  })

  test('a frozen node stops sales and nothing else, and they go on by themselves', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const inbox = await buy(server)
    const unpaid = await quote(server.url)
    const uncollected = await quote(server.url)
    await testbed.pay(uncollected.bolt11)
    await untilSettled(server, uncollected.paymentHash)

    const [early, late] = [randomUUID(), randomUUID()]
    testbed.alice.freeze()
    try {
      // It gets as far as the node, which takes its request and does not answer.
      const underWay = purchase(server.url, early)
      await untilCheckout(server.url, false)
      assert.deepEqual(await purchase(server.url, late), UNAVAILABLE)
      assert.deepEqual(await underWay, UNAVAILABLE)
      assert.equal(await countOrders(server), 3)
      assert.deepEqual(await poll(server.url, unpaid.orderId), pending(unpaid))
      assert.equal((await poll(server.url, uncollected.orderId)).status, 200)
      await useInbox(server.url, inbox)
    } finally {
      testbed.alice.thaw()
    }
    await untilCheckout(server.url, true)
    for (const { orderId, bolt11 } of [
      unpaid,
      await quote(server.url, early),
      await quote(server.url, late),
    ]) {
      await testbed.pay(bolt11)
      await useInbox(server.url, await collect(server.url, orderId))
    }
    await books.balance(server)
  })

  test('an order paid while the node is cut off from the chain is delivered when it is back', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const order = await quote(server.url)
    await testbed.chain.stop()
    // It hangs in the payer's router, which needs the chain too, and comes through afterwards.
    const payment = testbed.pay(order.bolt11)
    const key = randomUUID()
    try {
      await untilCheckout(server.url, false)
      assert.deepEqual(await purchase(server.url, key), UNAVAILABLE)
      assert.deepEqual(await poll(server.url, order.orderId), pending(order))
    } finally {
      await testbed.chain.start()
    }
    await payment
    await useInbox(server.url, await collect(server.url, order.orderId))
    await untilCheckout(server.url, true)
    const later = await quote(server.url, key)
    await testbed.pay(later.bolt11)
    await useInbox(server.url, await collect(server.url, later.orderId))
    await books.balance(server)
  })

  test('a start while the node is away sells nothing, and what is open heals by itself', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const inbox = await buy(server)
    const order = await quote(server.url)
    await server.stop()
    await testbed.pay(order.bolt11)
    await testbed.alice.kill()
    try {
      await server.restart()
      await untilCheckout(server.url, false)
      assert.deepEqual(await purchase(server.url, randomUUID()), UNAVAILABLE)
      assert.deepEqual(await poll(server.url, order.orderId), pending(order))
      await useInbox(server.url, inbox)
      assert.ok(server.logged.some((line) => line.includes('"checkout.closed"')))
    } finally {
      await startAlice()
    }
    await useInbox(server.url, await collect(server.url, order.orderId))
    await untilCheckout(server.url, true)
    await useInbox(server.url, await buy(server))
    await books.balance(server)
  })

  test('a node that comes back on another network sells nothing, and the log says why', async (t) => {
    const server = await startServer(t, await onAlice(t))
    await server.stop()
    await pretendMainnet(server)
    await assert.rejects(server.restart(), /belongs to lnd on mainnet/)
    await testbed.alice.kill()
    try {
      await server.restart()
    } finally {
      await startAlice()
    }
    await until('the reason', () =>
      server.logged.some((line) => line.includes('the node is on regtest')),
    )
    await untilCheckout(server.url, false)
    assert.deepEqual(await purchase(server.url, randomUUID()), UNAVAILABLE)
    assert.equal(await countOrders(server), 0)
  })

  test('every payment that the node ever received has bought something', async () => {
    await books.close()
  })
})

/** Makes the store one that belongs to a node on mainnet. */
async function pretendMainnet(server: Stored): Promise<void> {
  await query(server, `update meta set value = 'lnd on mainnet' where name = 'lightning'`)
}
