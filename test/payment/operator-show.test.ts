import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { readOrderRef, type Shown, showOrder } from '../../src/payment/showing.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { InvalidInvoice, MAX_INVOICE_CHARS } from '../../src/protocol/bolt11.ts'
import { aShop, LIFE, QUOTE_SECONDS, SECOND, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

async function find(shop: Shop, name: string): Promise<Shown> {
  const wanted = readOrderRef(name)
  assert.ok(wanted, name)
  return showOrder(shop.db, wanted)
}

async function settled(shop: Shop): Promise<Quote> {
  const quote = await shop.paidAndSeen()
  return quote
}

suite('finding an order', () => {
  test('a name is read as what it is, without the spaces and the scheme around it', async (t) => {
    const { bolt11, paymentHash, orderId } = await (await aShop(t)).quote()
    const hash = { by: 'payment_hash', value: paymentHash }
    const publicId = newId('catch')
    const NAMES: [given: string, read: unknown][] = [
      [` ${paymentHash} `, hash],
      [`LIGHTNING:${bolt11}`, hash],
      [`${orderId}\n`, { by: 'order_id', value: orderId }],
      [publicId, { by: 'public_id', value: publicId }],
      [`${paymentHash}0`, null],
      [`x${paymentHash}`, null],
      [`pay lightning:${bolt11}`, null],
      [`lnlightning:${bolt11.slice(2)}`, null],
      [`x${bolt11}`, null],
      ...['', 'abc', 'order_1', '0'.repeat(63), newId('pulse_status'), 'lnurl1abc'].map(
        (text): [string, null] => [text, null],
      ),
    ]
    for (const [given, read] of NAMES) assert.deepEqual(readOrderRef(given), read, given)
  })

  test('an invoice is read up to the length that any invoice may have', () => {
    const long = (characters: number) => () => readOrderRef('lnbc'.padEnd(characters, '1'))
    assert.throws(long(MAX_INVOICE_CHARS), InvalidInvoice)
    assert.equal(long(MAX_INVOICE_CHARS + 1)(), null)
  })
})

test('a deleted order is found by its payment hash alone, with its sale and how it ended', async (t) => {
  const shop = await aShop(t)
  const quote = await settled(shop)
  await shop.repeat()
  await shop.use(String((await shop.order(quote))?.public_id))
  const soldAt = shop.clock.now()
  const unpaid = await shop.quote(randomUUID())
  shop.clock.advance(2 * QUOTE_SECONDS * SECOND)
  await shop.orders.reconcile(unpaid.paymentHash, 'lookup')
  shop.clock.advance(LIFE)
  const now = shop.clock.now()
  await shop.db.write(unit(...purgeOrders(now, now)))
  assert.deepEqual(await find(shop, quote.orderId), { kind: 'none' })
  const ends: [Quote, string, number | undefined][] = [
    [quote, 'used', soldAt],
    [unpaid, 'dead', undefined],
  ]
  for (const [{ paymentHash }, ended, at] of ends) {
    const found = await find(shop, paymentHash)
    assert.ok(found.kind === 'deleted')
    assert.deepEqual([found.tombstone.ended, found.sale?.settled_at], [ended, at])
  }
})
