/** Orders whose end was a guess: the node has no final word, and may say later that they were paid. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { UnknownInvoice } from '../../src/lightning/lightning.ts'
import { delivered, events, many, nodeSays, plainPoll } from '../support/orders.ts'
import { aShop, DAY, QUOTE_SECONDS, SECOND, type Shop } from '../support/shop.ts'
import { ownedTimers } from '../support/timers.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'
import { key, watchingSilence } from '../support/watching.ts'

const EXPIRED = { kind: 'order expired' }

/** An order that died by a guess; nobody has looked at it in the second since. */
async function aDeadOrder(
  shop: Shop,
  by: 'dead' | 'dead by guess' = 'dead by guess',
  name = key(0),
) {
  const quote = await shop.quote(name)
  shop.clock.advance(QUOTE_SECONDS * SECOND)
  nodeSays(shop, by)
  // The stream and a look-up may say so at once.
  await many(2, () => shop.orders.reconcile(quote.paymentHash, 'lookup'))
  assert.equal((await shop.order(quote))?.state, 'dead')
  shop.clock.advance(SECOND)
  shop.node.lookups.length = 0
  return quote
}

suite('an order that is dead by a guess, and that the node calls settled later', () => {
  test('an order that was dead by a guess is delivered to a poll once the node calls it settled', async (t) => {
    const shop = await aShop(t)
    const quote = await aDeadOrder(shop)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), EXPIRED)
    shop.clock.advance(29 * DAY)
    nodeSays(shop, 'settled')
    const { publicId } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.provisioned(), [publicId])
  })

  test('an order that was dead by a guess is delivered to a repeat with its key, and no second invoice is made', async (t) => {
    const shop = await aShop(t)
    await aDeadOrder(shop)
    assert.deepEqual(await shop.repeat(), null)
    const name = { key: key(0) }
    assert.deepEqual(await shop.repeat(name), EXPIRED)
    shop.clock.advance(SECOND)
    nodeSays(shop, 'settled')
    delivered(await shop.repeat(name))
    assert.equal(shop.node.invoices.length, 1)
  })

  test('an order that was dead by a guess is settled at the next start', async (t) => {
    const shop = await aShop(t)
    const quote = await aDeadOrder(shop)
    nodeSays(shop, 'settled')
    watchingSilence(shop)
    await until('it is settled', async () => (await shop.order(quote))?.state === 'settled')
    assert.equal((await shop.provisioned()).length, 1)
  })
})

suite('an order that is dead', () => {
  test('an order that is dead by the word of the node is asked about no more', async (t) => {
    const shop = await aShop(t)
    const quote = await aDeadOrder(shop, 'dead')
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), EXPIRED)
      assert.deepEqual(await shop.repeat({ key: key(0) }), EXPIRED)
      shop.clock.advance(DAY)
    }
    const open = await shop.quote(key(1))
    const { stop } = watchingSilence(shop)
    await until('the open order was looked up', () => shop.node.lookups.length > 0)
    for (let i = 0; i < 50; i++) await shop.db.write(unit())
    await stop()
    assert.deepEqual(shop.node.lookups, [open.paymentHash])
  })

  test('an order that is dead by a guess is asked about no more once the node has said so', async (t) => {
    const shop = await aShop(t)
    const { orderId, paymentHash } = await aDeadOrder(shop)
    nodeSays(shop, 'dead')
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await shop.orders.poll(orderId, plainPoll), EXPIRED)
      shop.clock.advance(SECOND)
    }
    assert.deepEqual(shop.node.lookups, [paymentHash])
    // The node's stream is heard all the same.
    nodeSays(shop, 'settled')
    await shop.orders.reconcile(paymentHash, 'stream')
    delivered(await shop.orders.poll(orderId, plainPoll))
  })

  test('an order that is dead stays so while the node is away, or has forgotten it', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await aDeadOrder(shop)
    for (const says of ['nothing', 'unknown', 'open', 'dead by guess'] as const) {
      nodeSays(shop, says)
      assert.deepEqual(await shop.orders.poll(orderId, plainPoll), EXPIRED, says)
      shop.clock.advance(SECOND)
    }
    assert.deepEqual(events(shop, 'order.invoice_unknown'), [])
    assert.equal(events(shop, 'order.dead').length, 1)
  })
})

suite('the start with many orders that are dead by a guess', () => {
  async function aMonthOfDead(t: TestContext, count: number) {
    const shop = await aShop(t)
    const dead = await many(count, (i) => shop.quote(key(i)))
    nodeSays(shop, 'dead by guess')
    for (const { paymentHash } of dead) await shop.orders.reconcile(paymentHash, 'lookup')
    const open = await Promise.all([1, 2, 3].map((i) => shop.quote(key(1_000 + i))))
    shop.clock.advance(SECOND)
    shop.node.lookups.length = 0
    return { shop, dead, open }
  }

  test('the start looks at the open orders first, at some of the dead, and the sweeps look at each of the rest once', async (t) => {
    const { sweeps, noSweep } = ownedTimers(t)
    const { shop, dead, open } = await aMonthOfDead(t, 150)
    nodeSays(shop, 'open')
    watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length === 3 + 64)
    assert.deepEqual(
      new Set(shop.node.lookups.slice(0, 3)),
      new Set(open.map(({ paymentHash }) => paymentHash)),
    )
    for (let i = 0; i < 50; i++) await shop.db.write(unit())
    assert.equal(shop.node.lookups.length, 3 + 64)
    await sweeps(() => shop.node.lookups.length >= 3 + dead.length)
    let idle = 0
    await sweeps(() => ++idle > 20)
    assert.deepEqual(
      shop.node.lookups.slice(3).toSorted(),
      dead.map(({ paymentHash }) => paymentHash).toSorted(),
    )
    assert.deepEqual(events(shop, 'order.pass_failed'), [])
  })

  test('the start goes on with the dead orders when a node that was away is back', async (t) => {
    const { sweeps, noSweep } = ownedTimers(t)
    const { shop, dead } = await aMonthOfDead(t, 5)
    nodeSays(shop, 'nothing')
    watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length > 0)
    const settledAtNode = new Set(dead.map(({ paymentHash }) => paymentHash))
    shop.node.replaced.lookupInvoice = async (paymentHash) => {
      if (!settledAtNode.has(paymentHash)) throw new UnknownInvoice()
      return { state: 'settled' }
    }
    await sweeps(async () => (await shop.provisioned()).length > 0)
  })
})
