/** What the operator has paid back: of any order that was paid, once, and in the books. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { rfc3339 } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { deliverOrder, handOutOrder, refundOrder } from '../../src/payment/operator.ts'
import { type Entry, entriesBetween, purgeSales } from '../../src/payment/sales.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { aProduct, deps } from '../support/operator.ts'
import { byId, many, told } from '../support/orders.ts'
import { aShop, DAY, LIFE, SECOND, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const REASON = 'the inbox never worked'

const products = aProduct({ reserves: true })

const refund = (
  { clock }: Shop,
  db: Shop['db'],
  by: ({ orderId: string } | { paymentHash: string }) & { isSettled?: boolean },
) =>
  refundOrder(
    { db, clock, products },
    'orderId' in by
      ? { by: 'order_id', value: by.orderId }
      : { by: 'payment_hash', value: by.paymentHash },
    { reason: REASON, isSettled: by.isSettled ?? false },
  )

async function aPaid(t: TestContext, { isSoldOut = false } = {}) {
  const shop = await aShop(t, { isSoldOut })
  const quote = await shop.paidAndSeen()
  return { shop, quote, orderId: quote.orderId }
}

const books = async ({ db }: Shop): Promise<Entry[]> =>
  (await Array.fromAsync(entriesBetween(db, { from: 0, to: Number.MAX_SAFE_INTEGER }))).flat()

const released = async ({ db }: Shop) =>
  (await db.read(`select name from meta where name like 'released %'`)).length

async function forget({ db, clock }: Shop): Promise<void> {
  const now = clock.now()
  await db.write(unit(...purgeOrders(now - 30 * DAY, now)))
}

suite('a refund', () => {
  test('a refund of an order that is owed ends it for its buyer, frees what it reserved, and is no sale', async (t) => {
    const { shop, quote, orderId } = await aPaid(t, { isSoldOut: true })
    const { amountSats } = quote
    const other = await shop.paidAndSeen('the-key-of-another')
    assert.deepEqual(await refund(shop, shop.db, quote), {
      amountSats,
      publicId: null,
    })
    const row = await shop.order(quote)
    assert.deepEqual([row?.state, row?.sealed_at], ['refunded', shop.clock.now()])
    const told = { kind: 'order refunded' }
    assert.deepEqual(await shop.orders.poll(orderId, { key: null, isPrefetch: false }), told)
    for (const credential of ['none', 'verified', 'invalid'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), told)
    }
    assert.equal(shop.node.invoices.length, 2)
    assert.equal(await released(shop), 1)
    assert.equal((await shop.order(other))?.state, 'paid_unfulfilled')
    assert.deepEqual(await books(shop), [])
  })

  test('a refund of a delivered order ends its repeats, and the books have it with the negative amount', async (t) => {
    const { shop, quote } = await aPaid(t)
    assert.equal((await shop.repeat())?.kind, 'delivered')
    const soldAt = shop.clock.now()
    shop.clock.advance(DAY / 2)
    const publicId = (await shop.order(quote))?.public_id
    const { paymentHash, amountSats } = quote
    assert.deepEqual(await refund(shop, shop.db, { paymentHash, isSettled: true }), {
      amountSats,
      publicId,
    })
    assert.deepEqual(await shop.repeat(), { kind: 'order refunded' })
    const row = await shop.order(quote)
    assert.deepEqual([row?.seed, row?.sealed_at], [null, shop.clock.now()])
    assert.equal(await released(shop), 0, 'nothing of it is reserved any more')
    const sold = {
      payment_hash: paymentHash,
      product: 'catch',
      plan_id: 'spark',
      network: 'regtest',
    }
    assert.deepEqual(await books(shop), [
      { ...sold, at: soldAt, amount_sats: amountSats, is_refund: 0, reason: '' },
      { ...sold, at: shop.clock.now(), amount_sats: -amountSats, is_refund: 1, reason: REASON },
    ])
  })

  test('a paid order that is refunded before it was collected is never delivered', async (t) => {
    const { shop, quote, orderId } = await aPaid(t)
    await refund(shop, shop.db, { ...quote, isSettled: true })
    assert.deepEqual(await shop.repeat(), { kind: 'order refunded' })
    for (const deliver of [deliverOrder, handOutOrder]) {
      await assert.rejects(
        deliver(deps(shop, products), byId(orderId)),
        /is refunded: there is nothing/,
      )
    }
  })

  test('a delivery that was used keeps the time of its seal when it is refunded', async (t) => {
    const { shop, quote } = await aPaid(t)
    await shop.repeat()
    await shop.use(String((await shop.order(quote))?.public_id))
    const usedAt = shop.clock.now()
    shop.clock.advance(SECOND)
    await refund(shop, shop.db, { ...quote, isSettled: true })
    assert.equal((await shop.order(quote))?.sealed_at, usedAt)
  })

  test('one of ten refunds at once is noted, and later ones say when that was', async (t) => {
    for (const isSoldOut of [true, false]) {
      const { shop, quote } = await aPaid(t, { isSoldOut })
      const again = () => told(refund(shop, shop.db, { ...quote, isSettled: true }))
      const all = await many(10, again)
      assert.equal(all.filter((one) => typeof one !== 'string').length, 1)
      const at = rfc3339(shop.clock.now())
      shop.clock.advance(SECOND)
      assert.match(String(await again()), new RegExp(`was recorded as refunded at ${at}\\.`))
      assert.equal((await books(shop)).length, isSoldOut ? 0 : 2)
    }
  })

  for (const [what, isSoldOut, change, why] of [
    ['provisioned', true, `state = 'settled', public_id = 'catch_1'`, 'can collect'],
    ['delivered', false, 'delivered_at = 5', 'has what it bought'],
  ] as const) {
    test(`an order that is ${what} while it is refunded is not refunded before the operator looks again`, async (t) => {
      const { shop, quote } = await aPaid(t, { isSoldOut })
      const known = { ...quote, isSettled: true }
      const text = `update purchase_order set ${change}`
      const raced = refund(shop, meanwhile(shop.db, { text, values: [] }), known)
      await assert.rejects(raced, /is settled by now, and was not refunded/)
      assert.equal(await released(shop), 0)
      const asked = refund(shop, shop.db, quote)
      await assert.rejects(asked, new RegExp(`its buyer ${why}.+ add --settled`))
      assert.deepEqual(await shop.db.read('select * from refund'), [])
      await refund(shop, shop.db, known)
    })
  }

  test('an order that is deleted while it is refunded is refunded by its sale', async (t) => {
    const { shop, quote } = await aPaid(t)
    const gone = meanwhile(shop.db, { text: 'delete from purchase_order', values: [] })
    const done = refund(shop, gone, { ...quote, isSettled: true })
    assert.deepEqual(await done, { amountSats: quote.amountSats, publicId: null })
    assert.equal((await shop.db.read('select * from refund')).length, 1)
  })

  test('a refund and a delivery at once never hand out what was paid back', async (t) => {
    const { shop, quote, orderId } = await aPaid(t, { isSoldOut: true })
    const done = await Promise.all([
      told(refund(shop, shop.db, quote)),
      told(deliverOrder(deps(shop, products), byId(orderId))),
    ])
    assert.equal(done.filter((one) => typeof one !== 'string').length, 1, done.join())
    const [refunded] = done
    assert.equal(
      (await shop.order(quote))?.state,
      typeof refunded === 'string' ? 'settled' : 'refunded',
    )
  })

  test('what was not paid cannot be refunded', async (t) => {
    const shop = await aShop(t)
    const open = await shop.quote()
    await assert.rejects(
      refund(shop, shop.db, { ...open, isSettled: true }),
      /is pending: .+ knows of no payment/,
    )
    for (const by of [{ orderId: newId('order') }, { paymentHash: 'ff'.repeat(32) }]) {
      await assert.rejects(refund(shop, shop.db, by), { kind: 'unknown' })
    }
    assert.deepEqual(await shop.db.read('select * from refund'), [])
  })

  test('a refund outlives its order, and a deleted order is refunded by its sale, once', async (t) => {
    const { shop, quote } = await aPaid(t)
    const { paymentHash, amountSats, orderId } = quote
    shop.clock.advance(LIFE + 31 * DAY)
    await forget(shop)
    assert.equal(await shop.order(quote), undefined)
    const done = { amountSats, publicId: null }
    await assert.rejects(refund(shop, shop.db, { orderId }), { kind: 'unknown' })
    assert.deepEqual(await refund(shop, shop.db, { paymentHash }), done)
    await assert.rejects(refund(shop, shop.db, { paymentHash }), /was recorded as refunded at 2/)
    assert.deepEqual(
      (await books(shop)).map((entry) => entry.amount_sats),
      [amountSats, -amountSats],
    )
  })

  test('an order that was paid back is deleted 30 days later, and cannot be restored', async (t) => {
    const { shop, quote } = await aPaid(t, { isSoldOut: true })
    await refund(shop, shop.db, quote)
    shop.clock.advance(30 * DAY)
    await forget(shop)
    assert.equal((await shop.order(quote))?.state, 'refunded')
    shop.clock.advance(1)
    await forget(shop)
    assert.equal(await shop.order(quote), undefined)
    assert.deepEqual(await shop.db.read('select ended from order_tombstone'), [{ ended: 'aged' }])
    assert.equal((await shop.db.read('select * from refund')).length, 1)
  })

  test('refunds are deleted with the sales, after as many days as the operator keeps them', async (t) => {
    const { shop, quote } = await aPaid(t)
    await refund(shop, shop.db, { ...quote, isSettled: true })
    const { clock, db } = shop
    const left = async () => (await db.read('select * from refund')).length
    await purgeSales(db, { keptDays: 1, now: clock.now() + DAY })
    assert.equal(await left(), 1)
    await purgeSales(db, { keptDays: 1, now: clock.now() + DAY + 1 })
    assert.equal(await left(), 0)
  })
})
