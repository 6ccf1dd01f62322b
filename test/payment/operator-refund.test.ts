/** What the operator has paid back: of any order that was paid, once, and in the books. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { deliverOrder, handOutOrder, refundOrder } from '../../src/payment/operator.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { type Entry, entriesBetween, purgeSales } from '../../src/payment/sales.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { aShop, DAY, LIFE, SECOND, SECRET, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const secrets = createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])
const REASON = 'the inbox never worked'

/** A product that notes each order that it lets go of. */
const products: { catch: Provisioning } = {
  catch: {
    newPublicId: () => newId('catch'),
    provision: () => [],
    capability: () => null,
    release: (orderId) => [
      {
        text: 'insert into meta (name, value) values ($1, $2)',
        values: [`released ${orderId}`, ''],
        expect: 1,
      },
    ],
  },
}

const refund = (
  { clock }: Shop,
  db: Shop['db'],
  by: { orderId: string } | { paymentHash: string },
) =>
  refundOrder(
    { db, clock, products },
    'orderId' in by
      ? { by: 'order_id', value: by.orderId }
      : { by: 'payment_hash', value: by.paymentHash },
    REASON,
  )

const deps = ({ db, clock }: Shop) => ({ db, clock, secrets, products })

async function aPaid(t: TestContext, { isSoldOut = false } = {}) {
  const shop = await aShop(t, { isSoldOut })
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
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
    assert.deepEqual(await refund(shop, shop.db, quote), {
      ...{ kind: 'refunded', amountSats, publicId: null },
    })
    const row = await shop.order(quote)
    assert.deepEqual([row?.state, row?.sealed_at], ['refunded', shop.clock.now()])
    const told = { kind: 'order refunded' }
    assert.deepEqual(await shop.orders.poll(orderId, { key: null, isPrefetch: false }), told)
    for (const credential of ['none', 'verified', 'invalid'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), told)
    }
    assert.equal(shop.node.invoices.length, 1)
    assert.equal(await released(shop), 1)
    assert.deepEqual(await books(shop), [])
  })

  test('a refund of a delivered order ends its repeats, and the books have it with the negative amount', async (t) => {
    const { shop, quote } = await aPaid(t)
    assert.equal((await shop.repeat())?.kind, 'delivered')
    const soldAt = shop.clock.now()
    shop.clock.advance(DAY / 2)
    const publicId = (await shop.order(quote))?.public_id
    const { paymentHash, amountSats } = quote
    assert.deepEqual(await refund(shop, shop.db, { paymentHash }), {
      ...{ kind: 'refunded', amountSats, publicId },
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
    assert.equal((await refund(shop, shop.db, quote)).kind, 'refunded')
    assert.deepEqual(await shop.repeat(), { kind: 'order refunded' })
    const refused = { kind: 'not paid', state: 'refunded' }
    assert.deepEqual(await deliverOrder(deps(shop), orderId), refused)
    assert.deepEqual(await handOutOrder(deps(shop), orderId), refused)
  })

  test('a delivery that was used keeps the time of its seal when it is refunded', async (t) => {
    const { shop, quote } = await aPaid(t)
    await shop.repeat()
    await shop.use(String((await shop.order(quote))?.public_id))
    const usedAt = shop.clock.now()
    shop.clock.advance(SECOND)
    await refund(shop, shop.db, quote)
    assert.equal((await shop.order(quote))?.sealed_at, usedAt)
  })

  test('one of ten refunds at once is noted, and later ones say when that was', async (t) => {
    for (const isSoldOut of [true, false]) {
      const { shop, quote } = await aPaid(t, { isSoldOut })
      const all = await Promise.all(range(10).map(() => refund(shop, shop.db, quote)))
      assert.equal(all.filter(({ kind }) => kind === 'refunded').length, 1)
      const at = shop.clock.now()
      shop.clock.advance(SECOND)
      assert.deepEqual(await refund(shop, shop.db, quote), { kind: 'refunded before', at })
      assert.equal((await books(shop)).length, isSoldOut ? 0 : 2)
    }
  })

  test('an order that is provisioned while it is refunded is not refunded before the operator looks again', async (t) => {
    const { shop, quote, orderId } = await aPaid(t, { isSoldOut: true })
    const settled = {
      text: `update purchase_order set state = 'settled', public_id = 'catch_1' where order_id = $1`,
      values: [orderId],
    }
    const done = await refund(shop, meanwhile(shop.db, settled), quote)
    assert.deepEqual(done, { kind: 'changed', state: 'settled' })
    assert.equal(await released(shop), 0)
    assert.equal((await refund(shop, shop.db, quote)).kind, 'refunded')
  })

  test('a refund and a delivery at once never hand out what was paid back', async (t) => {
    const { shop, quote, orderId } = await aPaid(t, { isSoldOut: true })
    const [refunded, delivered] = await Promise.all([
      refund(shop, shop.db, quote),
      deliverOrder(deps(shop), orderId),
    ])
    assert.deepEqual(
      [refunded.kind, delivered.kind],
      refunded.kind === 'refunded' ? ['refunded', 'not paid'] : ['changed', 'provisioned'],
    )
  })

  test('what was not paid cannot be refunded', async (t) => {
    const shop = await aShop(t)
    const open = await shop.quote()
    assert.deepEqual(await refund(shop, shop.db, open), { kind: 'not paid', state: 'pending' })
    for (const by of [{ orderId: newId('order') }, { paymentHash: 'ff'.repeat(32) }]) {
      assert.deepEqual(await refund(shop, shop.db, by), { kind: 'order not found' })
    }
    assert.deepEqual(await shop.db.read('select * from refund'), [])
  })

  test('a refund outlives its order, and a deleted order is refunded by its sale, once', async (t) => {
    const { shop, quote } = await aPaid(t)
    const { paymentHash, amountSats, orderId } = quote
    shop.clock.advance(LIFE + 31 * DAY)
    await forget(shop)
    assert.equal(await shop.order(quote), undefined)
    const done = { kind: 'refunded', amountSats, publicId: null }
    assert.deepEqual(await refund(shop, shop.db, { orderId }), { kind: 'order not found' })
    assert.deepEqual(await refund(shop, shop.db, { paymentHash }), done)
    const again = { kind: 'refunded before', at: shop.clock.now() }
    assert.deepEqual(await refund(shop, shop.db, { paymentHash }), again)
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
    await refund(shop, shop.db, quote)
    const { clock, db } = shop
    const left = async () => (await db.read('select * from refund')).length
    await purgeSales(db, { keptDays: 1, now: clock.now() + DAY })
    assert.equal(await left(), 1)
    await purgeSales(db, { keptDays: 1, now: clock.now() + DAY + 1 })
    assert.equal(await left(), 0)
  })
})

const range = (length: number): number[] => Array.from({ length }, (_, i) => i)
