import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { rewind } from '../../src/db/clock-store.ts'
import { sealOverdue } from '../../src/payment/store.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { aShop, DAY, LIFE, openReads, QUOTE_SECONDS, SECOND } from '../support/shop.ts'
import { ownedTimers } from '../support/timers.ts'
import { unit } from '../support/unit.ts'
import { key, watching } from '../support/watching.ts'

suite('the tidying of the watcher', () => {
  test('the watcher tidies up nothing while the clock is held, and everything afterwards', async (t) => {
    const { sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    const settled = await shop.paid(key(1))
    await shop.orders.reconcile(settled.paymentHash, 'stream')
    const states = async () =>
      (
        await shop.db.read('select state, seed is null as wiped from purchase_order order by state')
      ).map(({ state, wiped }) => `${state}${Number(wiped) === 1 ? ', wiped' : ''}`)
    let tidied = 0
    watching(shop, async (_name, _everyMs, work) => {
      await work()
      tidied++
    })
    shop.clock.hold(true)
    shop.clock.jump(1000 * DAY)
    await sweeps(() => tidied === 2)
    assert.deepEqual(await states(), ['settled'])
    shop.clock.hold(false)
    await sweeps(async () => (await states()).length === 0)
  })

  test('an order that ended by a clock that is held lives on', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const poll = () => shop.orders.poll(quote.orderId, { key: null, isPrefetch: false })
    shop.clock.hold(true)
    shop.clock.jump(DAY)
    assert.equal((await poll()).kind, 'pending')
    assert.equal((await shop.repeat())?.kind, 'pending')
    shop.clock.jump(-DAY)
    await shop.db.write(unit(...rewind(shop.clock.now())))
    shop.clock.hold(false)
    shop.clock.advance(SECOND)
    assert.equal((await poll()).kind, 'pending')
    await shop.pay(quote)
    shop.clock.advance(SECOND)
    assert.equal((await poll()).kind, 'delivered')
  })

  test('seeds whose replay is over are wiped, and others are not', async (t) => {
    const shop = await aShop(t)
    const [fresh, collected, uncollected] = await Promise.all(
      [1, 2, 3].map((i) => shop.paid(key(i))),
    )
    assert.ok(fresh && collected && uncollected)
    for (const { paymentHash } of [collected, uncollected]) {
      await shop.orders.reconcile(paymentHash, 'stream')
    }
    await shop.orders.poll(collected.orderId, { key: null, isPrefetch: false })
    shop.clock.advance(DAY - 1)
    await shop.orders.reconcile(fresh.paymentHash, 'stream')
    await shop.orders.poll(fresh.orderId, { key: null, isPrefetch: false })
    const wiped = async () => {
      await shop.db.write(unit(sealOverdue(shop.clock.now(), DAY)))
      const orders = await Promise.all([fresh, collected, uncollected].map(shop.order))
      return orders.map((order) => order?.seed === null && order.sealed_at !== null)
    }
    assert.deepEqual(await wiped(), [false, false, false])
    shop.clock.advance(1)
    assert.deepEqual(await wiped(), [false, true, false])
    shop.clock.advance(LIFE - DAY - 1)
    assert.deepEqual(await wiped(), [true, true, false])
    shop.clock.advance(1)
    assert.deepEqual(await wiped(), [true, true, true])
  })

  test('orders are forgotten only when they owe nobody anything', async (t) => {
    const shop = await aShop(t)
    const settled = await shop.paid(key(1))
    await shop.orders.reconcile(settled.paymentHash, 'stream')
    const dead = await shop.quote(key(2))
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    await shop.orders.reconcile(dead.paymentHash, 'lookup')
    const pending = await shop.quote(key(3))
    const soldOut = shop.another({ isSoldOut: true })
    const owed = await shop.paid(key(4))
    await soldOut.reconcile(owed.paymentHash, 'stream')
    const states = async () =>
      (await Promise.all([settled, dead, pending, owed].map(shop.order))).map(
        (order) => order?.state ?? 'forgotten',
      )
    const all = ['settled', 'dead', 'pending', 'paid_unfulfilled']
    assert.deepEqual(await states(), all)

    await shop.db.write(unit(...purgeOrders(dead.expiresAt, shop.clock.now())))
    assert.deepEqual(await states(), all)
    await shop.db.write(unit(...purgeOrders(dead.expiresAt + 1, shop.clock.now())))
    assert.deepEqual(await states(), ['settled', 'forgotten', 'pending', 'paid_unfulfilled'])
    const later = shop.clock.now() + 1000 * DAY
    await shop.db.write(unit(...purgeOrders(later, later)))
    assert.deepEqual(await states(), ['forgotten', 'forgotten', 'pending', 'paid_unfulfilled'])
  })
})
