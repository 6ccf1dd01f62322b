import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { UnknownInvoice } from '../../src/lightning/lightning.ts'
import { claimLookup, createOrderStore } from '../../src/payment/store.ts'
import { many } from '../support/orders.ts'
import { aShop, DAY, HOUR, openReads, QUOTE_SECONDS, SECOND } from '../support/shop.ts'
import { ownedTimers } from '../support/timers.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'
import { key, watchingSilence } from '../support/watching.ts'

suite('the watcher', () => {
  test('the watcher finds at the start whatever was paid while nobody watched', async (t) => {
    const shop = await aShop(t)
    const paid = await Promise.all([1, 2, 3, 4, 5].map((i) => shop.paid(key(i))))
    const open = await shop.quote(key(6))
    watchingSilence(shop)
    await until('all that was paid is provisioned', async () => {
      return (await shop.provisioned()).length === paid.length
    })
    await until('each order was looked up', () => shop.node.lookups.length === paid.length + 1)
    assert.deepEqual(
      shop.node.lookups.toSorted(),
      [...paid, open].map(({ paymentHash }) => paymentHash).sort(),
    )
    assert.equal((await shop.order(open))?.state, 'pending')
  })

  for (const [what, error] of Object.entries({
    'that the node does not know': new UnknownInvoice(),
    'whose look-up fails, while the node answers for others': new Error('an unknown state'),
  })) {
    test(`the watcher goes on past an order ${what}`, async (t) => {
      const { noSweep } = ownedTimers(t)
      const shop = await aShop(t)
      const lost = await shop.quote(key(0))
      const paid = await many(33, (i) => shop.paid(key(i + 1)))
      shop.node.replaced.lookupInvoice = (paymentHash) =>
        paymentHash === lost.paymentHash
          ? Promise.reject(error)
          : shop.node.simulator.lookupInvoice(paymentHash)
      watchingSilence(shop)
      await noSweep(async () => (await shop.provisioned()).length === paid.length)
      assert.equal((await shop.order(lost))?.state, 'pending')
    })
  }

  test('the watcher stops asking a node that cannot be reached', async (t) => {
    const shop = await aShop(t)
    await many(20, (i) => shop.quote(key(i)))
    shop.node.replaced.lookupInvoice = () => Promise.reject(new Error('connection refused'))
    const { stop } = watchingSilence(shop)
    await until('the node was asked', () => shop.node.lookups.length > 0)
    // Were it to go on, it would have marked and asked many more by then.
    for (let i = 0; i < 50; i++) await shop.db.write(unit())
    await stop()
    assert.ok(shop.node.lookups.length < 20, `asked ${shop.node.lookups.length} times`)
  })

  test('the watcher shares the orders with others that look at the same time', async (t) => {
    const shop = await aShop(t)
    const quotes = await many(30, (i) => shop.quote(key(i)))
    const watchers = [watchingSilence(shop), watchingSilence(shop), watchingSilence(shop)]
    await until('each order was looked up', () => shop.node.lookups.length >= quotes.length)
    await Promise.all(watchers.map(({ stop }) => stop()))
    assert.deepEqual(
      shop.node.lookups.toSorted(),
      quotes.map(({ paymentHash }) => paymentHash).toSorted(),
    )
  })

  for (const [how, stepMs] of Object.entries({
    'goes back by 50 seconds': -50 * SECOND,
    'goes back by an hour': -HOUR,
    'leaps ahead by an hour': HOUR,
  })) {
    for (const when of ['once', 'with each answer'] as const) {
      test(`the watcher looks each order up once where the clock ${how}, ${when}`, async (t) => {
        const { sweeps } = ownedTimers(t)
        const shop = await aShop(t)
        const quotes = await many(20, (i) => shop.quote(key(i)))
        let isFirst = true
        shop.node.replaced.lookupInvoice = async () => {
          if (isFirst || when === 'with each answer') shop.clock.advance(stepMs)
          isFirst = false
          return { state: 'open' }
        }
        const { stop } = watchingSilence(shop)
        await sweeps(() => shop.node.lookups.length >= quotes.length)
        // Were it to go on, it would ask many times more by then.
        for (let i = 0; i < 50; i++) await shop.db.write(unit())
        await stop()
        assert.deepEqual(
          shop.node.lookups.toSorted(),
          quotes.map(({ paymentHash }) => paymentHash).toSorted(),
        )
      })
    }
  }

  test('the watcher has stopped only when the look-up that is under way has ended', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    await shop.quote()
    const answer = Promise.withResolvers<{ state: 'open' }>()
    shop.node.replaced.lookupInvoice = () => answer.promise
    const { stop } = watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length === 1)
    let hasStopped = false
    const stopping = stop().then(() => {
      hasStopped = true
    })
    for (let i = 0; i < 50; i++) await shop.db.write(unit())
    assert.equal(hasStopped, false)
    answer.resolve({ state: 'open' })
    await stopping
  })
})

suite('the sweep', () => {
  test('the sweep counts as the one look-up of that second', async (t) => {
    const { sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    const { orderId } = await shop.quote()
    watchingSilence(shop)
    await sweeps(() => shop.node.lookups.length === 1)
    shop.clock.advance(16 * SECOND)
    await sweeps(() => shop.node.lookups.length === 2)
    const poll = () => shop.orders.poll(orderId, { key: null, isPrefetch: false })
    await poll()
    assert.equal(shop.node.lookups.length, 2)
    shop.clock.advance(SECOND)
    await poll()
    assert.equal(shop.node.lookups.length, 3)
  })

  test('the sweep leaves out what somebody has polled meanwhile', async (t) => {
    const { sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    const polled = await shop.quote(key(1))
    const silent = await shop.quote(key(2))
    const isNoted = async (quote: { orderId: string }) =>
      Number((await shop.order(quote))?.looked_up_at) > 0
    watchingSilence(shop)
    // Noted before the time passes: a look-up that is noted later counts from then. The node is asked after that.
    await sweeps(async () => (await isNoted(polled)) && (await isNoted(silent)))
    await sweeps(() => shop.node.lookups.length === 2)
    assert.equal(shop.node.lookups.length, 2)
    shop.clock.advance(16 * SECOND)
    await shop.orders.poll(polled.orderId, { key: null, isPrefetch: false })
    await sweeps(() => shop.node.lookups.length === 4)
    assert.deepEqual(shop.node.lookups.slice(2), [polled.paymentHash, silent.paymentHash])
  })

  test('the sweep asks less and less often the longer a quote has been over, and never stops', async (t) => {
    const shop = await aShop(t)
    const { orderId, expiresAt } = await shop.quote()
    const store = createOrderStore(shop.db)
    const lookedUp = async () => Number((await shop.order({ orderId }))?.looked_up_at)
    const MINUTE = 60 * SECOND
    const pauses: [overMs: number, pauseMs: number][] = [
      [-QUOTE_SECONDS * SECOND, 15 * SECOND],
      [150 * SECOND, 15 * SECOND],
      [10 * MINUTE, MINUTE],
      [5 * 60 * MINUTE, 30 * MINUTE],
      [10 * 60 * MINUTE, 60 * MINUTE],
      [DAY, 60 * MINUTE],
      [3650 * DAY, 60 * MINUTE],
    ]
    for (const [overMs, pauseMs] of pauses) {
      const now = expiresAt + overMs
      const last = now - pauseMs
      await shop.db.write(unit(claimLookup(orderId, last, await lookedUp())))
      assert.deepEqual(await store.due(now, 10), [], `${overMs} after ${pauseMs}`)
      const claimed = await shop.db.write(unit(claimLookup(orderId, last - 1, last)))
      assert.equal(claimed.all.length, 1)
      assert.equal((await store.due(now, 10)).length, 1, `${overMs} after ${pauseMs} more`)
    }
  })
})
