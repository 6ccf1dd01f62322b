/** How many sales a day may have: of the service, and to one client network. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { createCeilings, type MaxSales } from '../../src/payment/ceilings.ts'
import { refundOrder } from '../../src/payment/operator.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { aProduct } from '../support/operator.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  DAY,
  HOUR,
  pendingQuote,
  SECOND,
} from '../support/shop.ts'
import { key } from '../support/watching.ts'

const NETWORK = '203.0.113'
const OTHER_NETWORK = '198.51.100'

/** A shop at noon, which counts what the ceilings read. */
async function aLimitedShop(t: TestContext, max: MaxSales) {
  const shop = await aShop(t)
  shop.clock.advance(DAY / 2 - (shop.clock.now() % DAY))
  const reads: string[] = []
  const db: Parameters<typeof createCeilings>[1]['db'] = {
    read: (text, ...values) => {
      reads.push(text)
      return shop.db.read(text, ...values)
    },
  }
  const ceilings = createCeilings(max, { db, clock: shop.clock, log: shop.log })
  assert.ok(ceilings)
  let orders = 0
  const sell = async (clientNetwork = NETWORK): Promise<Quote> => {
    const { orders: at } = shop
    const opened = await at.open(aName(key(orders++)), aRequest(), anOffer({ clientNetwork }))
    const quote = pendingQuote(opened)
    await shop.pay(quote)
    await at.reconcile(quote.paymentHash, 'stream')
    return quote
  }
  const warnings = () => shop.logged.filter(({ event }) => event === 'checkout.ceiling_reached')
  return { ...shop, ceilings, reads, sell, warnings }
}

suite('ceilings on the sales of a day', () => {
  test('without a ceiling nothing is counted', async (t) => {
    const { db, clock, log } = await aShop(t)
    const deps = { db, clock, log }
    assert.equal(createCeilings({ perDay: null, perNetwork: null }, deps), null)
    assert.notEqual(createCeilings({ perDay: 1, perNetwork: null }, deps), null)
    assert.notEqual(createCeilings({ perDay: null, perNetwork: 1 }, deps), null)
  })

  test('the ceiling of a network stands below that of the service', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 3, perNetwork: 1 })
    await shop.sell()
    assert.equal(await shop.ceilings.waitMs(NETWORK), DAY / 2)
    assert.equal(await shop.ceilings.waitMs(OTHER_NETWORK), null)
  })

  test('a sale of the day before counts no more, and one at midnight does', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 1, perNetwork: 1 })
    const { ceilings, clock } = shop
    clock.advance(DAY / 2 - 1)
    await shop.sell()
    clock.advance(1)
    assert.equal(await ceilings.waitMs(NETWORK), null)
    await shop.sell()
    clock.advance(SECOND)
    assert.equal(await ceilings.waitMs(NETWORK), DAY - SECOND)
  })

  test('what is owed or unpaid is no sale, nor if it is paid back', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 1, perNetwork: 1 })
    const soldOut = shop.another({ isSoldOut: true })
    const quote = pendingQuote(await soldOut.open(aName(), aRequest(), anOffer()))
    assert.equal(await shop.ceilings.waitMs(NETWORK), null)
    await shop.pay(quote)
    await soldOut.reconcile(quote.paymentHash, 'stream')
    shop.clock.advance(SECOND)
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
    assert.equal(await shop.ceilings.waitMs(NETWORK), null)
    const owed = { by: 'payment_hash', value: quote.paymentHash } as const
    await refundOrder({ ...shop, products: aProduct() }, owed, { reason: 'sold out' })
    assert.equal(await shop.ceilings.waitMs(NETWORK), null)
  })

  test('what was sold and paid back still counts, for the service and for its buyer', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 2, perNetwork: 1 })
    const refund = async ({ paymentHash }: Quote): Promise<void> => {
      const ref = { by: 'payment_hash', value: paymentHash } as const
      await refundOrder({ ...shop, products: aProduct() }, ref, {
        reason: 'a takedown',
        isSettled: true,
      })
      shop.clock.advance(SECOND)
    }
    await refund(await shop.sell())
    assert.equal(await shop.ceilings.waitMs(NETWORK), DAY / 2 - SECOND)
    assert.equal(await shop.ceilings.waitMs(OTHER_NETWORK), null)
    await refund(await shop.sell(OTHER_NETWORK))
    assert.equal(await shop.ceilings.waitMs('192.0.2'), DAY / 2 - 2 * SECOND)
  })

  test('the sales of the service are counted once a second, and again after a day or a step of the clock', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 1, perNetwork: null })
    const { ceilings, clock, reads } = shop
    const counts = async (): Promise<number> => {
      const before = reads.length
      await ceilings.waitMs(NETWORK)
      return reads.length - before
    }
    assert.deepEqual([await counts(), await counts()], [1, 0])
    await shop.sell()
    clock.advance(SECOND - 1)
    assert.equal(await ceilings.waitMs(NETWORK), null, 'counted a moment ago')
    clock.advance(1)
    assert.deepEqual([await counts(), await counts()], [1, 0])
    clock.jump(-HOUR)
    assert.deepEqual([await counts(), await counts()], [1, 0])
    clock.advance(DAY / 2 + HOUR - SECOND - 1)
    assert.equal(await counts(), 1)
    clock.advance(1)
    assert.deepEqual([await counts(), await counts()], [1, 0], 'midnight')
  })

  test('the operator is warned once a day that the ceiling is reached', async (t) => {
    const shop = await aLimitedShop(t, { perDay: 1, perNetwork: null })
    const { ceilings, clock } = shop
    for (const day of [1, 2]) {
      assert.equal(shop.warnings().length, day - 1)
      await shop.sell()
      for (let i = 0; i < 3; i++) {
        clock.advance(SECOND)
        await ceilings.waitMs(NETWORK)
      }
      assert.equal(shop.warnings().length, day)
      clock.advance(DAY)
    }
    assert.deepEqual(shop.warnings()[0], { event: 'checkout.ceiling_reached', sales: 1 })
  })
})
