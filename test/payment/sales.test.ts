import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Statement } from '../../src/db/db.ts'
import { type Entry, entriesBetween, purgeSales, recordRefund } from '../../src/payment/sales.ts'
import { aShop, DAY, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const ALWAYS = { from: 0, to: Number.MAX_SAFE_INTEGER }

async function sales(shop: Shop, between = ALWAYS): Promise<Entry[]> {
  const pages = await Array.fromAsync(entriesBetween(shop.db, between))
  return pages.flat()
}

const range = (length: number): number[] => Array.from({ length }, (_, i) => i)

/** A sale that was settled at this time. */
const aSale = (settledAt: number, hash: string): Statement => ({
  text: `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
    values ($1, $2, 'catch', 'spark', 100, 'mainnet')`,
  values: [hash, settledAt],
})

suite('sales', () => {
  test('a sale has nothing of its buyer: no id, key, address or network of a client', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const [row = {}] = await shop.db.read('select * from sale')
    assert.deepEqual(Object.keys(row).toSorted(), [
      ...['amount_sats', 'network', 'payment_hash', 'plan_id', 'product', 'settled_at'],
    ])
    const order = await shop.order(quote)
    for (const column of ['order_id', 'public_id', 'client_network', 'opened_by'])
      assert.ok(!Object.values(row).includes(order?.[column] as string), column)
  })

  test('a time of sales begins at its first moment and ends before its last, and no page loses a row', async (t) => {
    const shop = await aShop(t)
    const hash = (number: number): string => String(number).padStart(64, '0')
    // More than two pages, with times that many share.
    await shop.db.write(
      unit(...range(2_500).map((i) => aSale(1_000 + Math.floor(i / 700), hash(i)))),
    )
    const all = await sales(shop)
    assert.deepEqual(
      all.map(({ payment_hash }) => payment_hash),
      range(2_500).map(hash),
    )
    // A refund has its own time.
    const refund = { paymentHash: hash(0), refundedAt: 1_003, amountSats: 100, reason: '' }
    await shop.db.write(unit(recordRefund(refund)))
    assert.equal((await sales(shop, { from: 1_001, to: 1_003 })).length, 1_400)
    assert.equal((await sales(shop, { from: 1_003, to: 9_000 })).length, 401)
    assert.deepEqual(await sales(shop, { from: 1_004, to: 9_000 }), [])
    const lengths = async (between: typeof ALWAYS) =>
      (await Array.fromAsync(entriesBetween(shop.db, between))).map(({ length }) => length)
    assert.deepEqual(await lengths(ALWAYS), [1_000, 1_000, 501])
    assert.deepEqual(await lengths({ from: 1_004, to: 9_000 }), [], 'no empty page')
  })

  test('sales are deleted after as many days as the operator keeps them, 500 at a time', async (t) => {
    const shop = await aShop(t)
    const now = shop.clock.now()
    const old = range(501).map((i) => aSale(now - 3 * DAY - 1 - i, `old ${i}`))
    await shop.db.write(unit(...old, aSale(now - 3 * DAY, 'kept')))
    const purge = (at: number) => purgeSales(shop.db, { keptDays: 3, now: at })
    const left = async () => (await sales(shop)).map(({ payment_hash }) => payment_hash)
    await purge(now)
    assert.deepEqual(await left(), ['old 0', 'kept'], 'the oldest first')
    await purge(now)
    assert.deepEqual(await left(), ['kept'])
    await purge(now + 1)
    assert.deepEqual(await left(), [])
  })
})
