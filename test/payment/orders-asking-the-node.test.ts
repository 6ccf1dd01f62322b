/** What orders ask of the node, how long they wait for it, and what they make of its answers. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreAway, type Unit } from '../../src/db/db.ts'
import type { OrderRow } from '../../src/payment/store.ts'
import { delivered, events, keyPoll, many, nodeSays, plainPoll } from '../support/orders.ts'
import { aShop, SECOND, type Shop } from '../support/shop.ts'
import { ownedTimers } from '../support/timers.ts'
import { until } from '../support/until.ts'
import { key } from '../support/watching.ts'

/** Lets the node answer no look-up until the test says so. */
function holdingTheNode(shop: Shop) {
  const held = Promise.withResolvers<void>()
  shop.node.lookups.length = 0
  shop.node.replaced.lookupInvoice = async () => {
    await held.promise
    return { state: 'open' }
  }
  return held
}

suite('asking the node about an order', () => {
  test('a look-up says whether the node was reached, and tells the log when it was not', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const row = (await shop.order(quote)) as OrderRow
    const answers = { nothing: false, unknown: true, open: true, 'dead by guess': true, dead: true }
    for (const [says, isReached] of Object.entries(answers)) {
      nodeSays(shop, says as keyof typeof answers)
      assert.equal(await shop.orders.lookUp(row, 'lookup'), isReached, says)
    }
    assert.deepEqual(events(shop, 'lightning.lookup_failed'), [
      {
        event: 'lightning.lookup_failed',
        paymentHash: quote.paymentHash,
        reason: 'connection refused',
      },
    ])
  })

  test('a poll waits two seconds for the node, and the payment that the node tells of later is not lost', async (t) => {
    const { sweeps, noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    const quote = await shop.quote()
    const told = Promise.withResolvers<void>()
    shop.node.replaced.lookupInvoice = async () => {
      await told.promise
      return { state: 'settled' }
    }
    const answers: unknown[] = []
    const poll = shop.orders.poll(quote.orderId, plainPoll).then((answer) => answers.push(answer))
    await noSweep(() => shop.node.lookups.length === 1)
    t.mock.timers.tick(1_999)
    for (let i = 0; i < 20; i++) await shop.db.read('select 1 as one')
    assert.deepEqual(answers, [])
    t.mock.timers.tick(1)
    await poll
    assert.deepEqual(answers, [{ kind: 'pending', quote }])
    told.resolve()
    await sweeps(async () => (await shop.order(quote))?.state === 'settled')
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('polls of open orders are never too many for the node, and leave its look-ups to dead ones', async (t) => {
    const shop = await aShop(t)
    const dead = await many(20, (i) => shop.quote(key(i)))
    nodeSays(shop, 'dead by guess')
    for (const { paymentHash } of dead) await shop.orders.reconcile(paymentHash, 'lookup')
    const open = await many(20, (i) => shop.quote(key(100 + i)))
    shop.clock.advance(SECOND)

    const first = holdingTheNode(shop)
    const polls = open.map(({ orderId }) => shop.orders.poll(orderId, plainPoll))
    await until('each open order was asked about', () => shop.node.lookups.length === 20)
    first.resolve()
    await Promise.all(polls)

    // A store that was away takes none of them for good.
    const { write } = shop.db
    shop.db.write = () => Promise.reject(new StoreAway('away'))
    for (const { orderId } of dead) {
      await assert.rejects(shop.orders.poll(orderId, plainPoll), StoreAway)
    }
    shop.db.write = write

    const second = holdingTheNode(shop)
    let answered = 0
    const later = dead.map(({ orderId }) =>
      shop.orders.poll(orderId, plainPoll).finally(() => answered++),
    )
    const { lookups } = shop.node
    await until('12 were answered without the node', () => answered >= 12 && lookups.length >= 8)
    assert.deepEqual([answered, lookups.length], [12, 8])
    second.resolve()
    await Promise.all(later)
    // They are over, and others may be asked about.
    shop.clock.advance(SECOND)
    await Promise.all(dead.slice(12).map(({ orderId }) => shop.orders.poll(orderId, plainPoll)))
    assert.equal(lookups.length, 16)
  })

  test('polls of an order that the node has no news of write nothing', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { outcome } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
    shop.clock.advance(SECOND)
    const written: Unit[] = []
    const write = shop.db.write
    shop.db.write = (unit) => {
      written.push(unit)
      return write(unit)
    }
    assert.deepEqual(await many(3, () => shop.orders.poll(quote.orderId, keyPoll)), [
      outcome,
      outcome,
      outcome,
    ])
    assert.deepEqual(written, [])
  })
})

test('an order that the node calls dead while the clock is held stays open until the hold ends', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote()
  const poll = () => {
    shop.clock.advance(SECOND)
    return shop.orders.poll(quote.orderId, plainPoll)
  }
  shop.clock.hold(true)
  nodeSays(shop, 'dead')
  assert.deepEqual(await poll(), { kind: 'pending', quote })
  assert.deepEqual(events(shop, 'order.dead'), [])
  shop.clock.hold(false)
  assert.deepEqual(await poll(), { kind: 'order expired' })
})
