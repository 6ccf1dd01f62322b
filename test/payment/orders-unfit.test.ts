/** Settlements that fail for a reason of their own: the money is here, and the order can never be applied. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Db, StoreAway, StoreError } from '../../src/db/db.ts'
import { deliverOrder, refundOrder } from '../../src/payment/operator.ts'
import { deps } from '../support/operator.ts'
import { byId, delivered, events, many, plainPoll, told } from '../support/orders.ts'
import { anOffer, aShop, LIFE, SECOND, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'
import { key, watchingSilence } from '../support/watching.ts'

/** A value that no column takes, on either engine. */
const unfit = { text: 'insert into meta (name, value) values ($1, null)', values: ['unfit'] }

/** What stands in the row of an order that can never be applied, as an older version let it in. */
const BROKEN_PLANS: Record<string, string> = {
  'is no JSON': '{"planId":"spark"',
  'lasts longer than a number can say': JSON.stringify({
    ...anOffer().plan,
    durationSeconds: 1e13,
  }),
  'does not say how long it lasts': '{"planId":"spark","priceSats":100}',
  'lasts no time': '{"planId":"spark","priceSats":100,"durationSeconds":"a week"}',
}

const plant = (shop: Shop, { orderId }: { orderId: string }, plan: string) =>
  shop.db.write(
    unit({
      text: 'update purchase_order set plan = $2 where order_id = $1',
      values: [orderId, plan],
      expect: 1,
    }),
  )

suite('a paid order whose plan is broken', () => {
  for (const [what, plan] of Object.entries(BROKEN_PLANS)) {
    test(`a paid order whose plan ${what} is owed, said once, and repaired once the cause is mended`, async (t) => {
      const shop = await aShop(t)
      const quote = await shop.paid()
      await plant(shop, quote, plan)
      const owed = { kind: 'checkout unavailable' }
      assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), owed)
      shop.clock.advance(SECOND)
      assert.deepEqual(await shop.repeat(), owed)
      await shop.orders.reconcile(quote.paymentHash, 'stream')
      const before = await shop.order(quote)
      assert.deepEqual(
        [before?.state, before?.settled_by, before?.seed, before?.public_id],
        ['paid_unfulfilled', 'lookup', null, null],
      )
      const lines = events(shop, 'order.paid_unfulfilled')
      assert.deepEqual(
        lines.map(({ paymentHash, reason }) => [paymentHash, typeof reason]),
        [[quote.paymentHash, 'string']],
      )
      const early = await told(deliverOrder(deps(shop), byId(quote.orderId)))
      assert.match(String(early), /cannot be provisioned: .+ You still owe it/)
      assert.deepEqual(await shop.order(quote), before)
      await plant(shop, quote, JSON.stringify(anOffer().plan))
      await deliverOrder(deps(shop), byId(quote.orderId))
      const { expiresAt } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
      assert.equal(Date.parse(expiresAt), shop.clock.now() + LIFE)
      assert.equal(shop.node.invoices.length, 1)
    })
  }

  test('a paid order whose plan is no JSON can be noted as paid back', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await plant(shop, quote, BROKEN_PLANS['is no JSON'] ?? '')
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    await refundOrder(deps(shop), byId(quote.orderId), { reason: 'gone' })
    assert.deepEqual(await shop.repeat(), { kind: 'order refunded' })
  })
})

suite('a settling unit', () => {
  test('a settling unit with a value that the store takes from nobody makes its order paid_unfulfilled', async (t) => {
    const shop = await aShop(t, { provisions: () => [unfit] })
    const quote = await shop.paid()
    const owed = { kind: 'checkout unavailable' }
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), owed)
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
    const [line] = events(shop, 'order.paid_unfulfilled')
    assert.match(String(line?.reason), /NOT NULL|PostgreSQL refused/)
    assert.deepEqual(await shop.repeat(), owed)
    assert.deepEqual(await shop.provisioned(), [])
    await deliverOrder(deps(shop), byId(quote.orderId))
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('a settling unit whose product throws makes its order paid_unfulfilled, proved by a preimage too', async (t) => {
    const shop = await aShop(t, {
      provisions: () => {
        throw new TypeError('no such terms')
      },
    })
    const quote = await shop.quote()
    assert.deepEqual(await shop.repeat({ credential: 'verified' }), {
      kind: 'checkout unavailable',
    })
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
    assert.equal(events(shop, 'order.paid_unfulfilled')[0]?.reason, 'no such terms')
  })

  test('a settling unit that the store could not take for now leaves its order open, whatever went wrong', async (t) => {
    for (const error of [new StoreAway('database or disk is full'), new StoreError('no thread')]) {
      const shop = await aShop(t)
      const quote = await shop.paid()
      const write = shop.db.write
      shop.db.write = (unit) =>
        'provision' in unit.statements ? Promise.reject(error) : write(unit)
      await assert.rejects(shop.orders.reconcile(quote.paymentHash, 'stream'), error)
      shop.db.write = write
      assert.equal((await shop.order(quote))?.state, 'pending')
      assert.deepEqual(events(shop, 'order.paid_unfulfilled'), [])
      delivered(await shop.orders.poll(quote.orderId, plainPoll))
    }
  })
})

suite('the pass at the start', () => {
  test('the pass at the start ends when the store is away, and leaves the rest to the sweep', async (t) => {
    const shop = await aShop(t)
    const quotes = await many(40, (i) => shop.paid(key(i)))
    for (const quote of quotes) failSettling(shop.db, quote, new StoreAway('the disk is full'))
    watchingSilence(shop)
    await until('the pass ended', () => events(shop, 'order.pass_failed').length === 1)
    assert.ok(shop.node.lookups.length <= 8, `${shop.node.lookups.length} look-ups`)
  })
})

/** Fails the settling unit of one order, and lets everything else through. */
function failSettling(db: Db, { orderId }: { orderId: string }, error: Error): void {
  const write = db.write
  db.write = (unit) =>
    unit.lockKey === orderId && 'provision' in unit.statements ? Promise.reject(error) : write(unit)
}
