import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { deliverOrder, refundOrder } from '../../src/payment/operator.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { listOrders, readOrderRef, type Shown, showOrder } from '../../src/payment/showing.ts'
import { storyOf, storyOfDeleted } from '../../src/payment/story.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { InvalidInvoice, MAX_INVOICE_CHARS } from '../../src/protocol/bolt11.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { byId } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  DAY,
  LIFE,
  pendingQuote,
  QUOTE_SECONDS,
  SECOND,
  SECRET,
  type Shop,
} from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const products = {
  catch: { newPublicId: () => newId('catch'), provision: () => [], capability: () => null },
}
const secrets = () => createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])

async function find(shop: Shop, name: string): Promise<Shown> {
  const wanted = readOrderRef(name)
  assert.ok(wanted, name)
  return showOrder(shop.db, wanted)
}

async function story(shop: Shop, { paymentHash }: Quote) {
  const found = await find(shop, paymentHash)
  if (found.kind === 'order') return storyOf(found.order, shop.clock.now())
  assert.equal(found.kind, 'deleted')
  return storyOfDeleted(found.tombstone, found)
}

const events = ({ happened }: { happened: { event: string }[] }) =>
  happened.map(({ event }) => event)

async function settled(shop: Shop): Promise<Quote> {
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  return quote
}

async function purge(shop: Shop): Promise<void> {
  const now = shop.clock.now()
  await shop.db.write({
    lockKey: 'purchase_order',
    statements: { purge: purgeOrders(now - 30 * DAY, now) },
  })
}

suite('finding an order', () => {
  test('an order is found by its payment hash, its invoice, its id and what it bought', async (t) => {
    const shop = await aShop(t)
    const quote = await settled(shop)
    const publicId = String((await shop.order(quote))?.public_id)
    for (const name of [
      quote.paymentHash,
      quote.paymentHash.toUpperCase(),
      quote.bolt11,
      quote.bolt11.toUpperCase(),
      ` lightning:${quote.bolt11}\n`,
      quote.orderId,
      publicId,
    ]) {
      const found = await find(shop, name)
      assert.equal(found.kind === 'order' && found.order.order_id, quote.orderId, name)
    }
    assert.deepEqual(await find(shop, '00'.repeat(32)), { kind: 'none' })
    assert.deepEqual(await find(shop, newId('catch')), { kind: 'none' })
  })

  test('a text that names no order is refused before the store is asked', () => {
    for (const text of ['', 'abc', 'order_1', '0'.repeat(63), newId('pulse_status'), 'lnurl1abc'])
      assert.equal(readOrderRef(text), null, text)
    assert.equal(readOrderRef(`lnbc${'1'.repeat(8_000)}`), null, 'too long')
    assert.throws(() => readOrderRef('lnbc1notaninvoice'), InvalidInvoice)
  })

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
    ]
    for (const [given, read] of NAMES) assert.deepEqual(readOrderRef(given), read, given)
  })

  test('an invoice is read up to the length that any invoice may have', () => {
    const long = (characters: number) => () => readOrderRef('lnbc'.padEnd(characters, '1'))
    assert.throws(long(MAX_INVOICE_CHARS), InvalidInvoice)
    assert.equal(long(MAX_INVOICE_CHARS + 1)(), null)
  })

  test('the orders of one capability are found with each other, newest first, and no others', async (t) => {
    const shop = await aShop(t, {
      extend: async (_db, { now }) => ({ expiresAt: now + LIFE, statements: [] }),
    })
    const bought = await settled(shop)
    const publicId = String((await shop.order(bought))?.public_id)
    const extended: Quote[] = []
    for (let i = 0; i < 2; i++) {
      shop.clock.advance(SECOND)
      const request = aRequest({ extendsId: publicId })
      const opened = await shop.orders.open(aName(randomUUID()), request, anOffer())
      const quote = pendingQuote(opened)
      await shop.pay(quote)
      await shop.orders.reconcile(quote.paymentHash, 'stream')
      extended.push(quote)
    }
    const alone = await shop.quote(randomUUID())
    const [first, second] = extended.map(({ paymentHash }) => paymentHash)
    const othersOf = async ({ paymentHash }: Quote) => {
      const found = await find(shop, paymentHash)
      return found.kind === 'order' ? found.others.map((other) => other.payment_hash) : null
    }
    assert.deepEqual(await othersOf(bought), [second, first])
    assert.deepEqual(await othersOf(extended[0] as Quote), [second, bought.paymentHash])
    assert.deepEqual(await othersOf(alone), [])
    const row = await shop.db.read(
      'select count(*) as n from purchase_order where public_id is null',
    )
    assert.equal(Number(row[0]?.n), 3)

    const named = async () => {
      const found = await find(shop, publicId)
      return found.kind === 'order' ? found.order.payment_hash : found.kind
    }
    assert.equal(await named(), bought.paymentHash)
    await shop.db.write(
      unit({ text: 'delete from purchase_order where public_id = $1', values: [publicId] }),
    )
    assert.equal(await named(), second, 'the newest that has extended it')
    assert.deepEqual(await find(shop, newId('order')), { kind: 'none' })
  })

  test('orders are listed newest first, of one state, of one product, since a time, up to a number', async (t) => {
    const shop = await aShop(t)
    const first = await settled(shop)
    const since = shop.clock.now() + SECOND
    shop.clock.advance(SECOND)
    const second = await shop.quote(randomUUID())
    const all = { state: null, product: null, since: 0, limit: 10 } as const
    const hashes = async (wanted: Parameters<typeof listOrders>[1]) =>
      (await listOrders(shop.db, wanted)).map(({ payment_hash }) => payment_hash)
    assert.deepEqual(await hashes(all), [second.paymentHash, first.paymentHash])
    assert.deepEqual(await hashes({ ...all, limit: 1 }), [second.paymentHash])
    assert.deepEqual(await hashes({ ...all, since }), [second.paymentHash])
    assert.deepEqual(await hashes({ ...all, state: 'settled' }), [first.paymentHash])
    assert.deepEqual(await hashes({ ...all, product: 'pulse' }), [])
    assert.deepEqual(await hashes({ ...all, product: 'catch', state: 'pending', since }), [
      second.paymentHash,
    ])
  })
})

suite('the story of an order', () => {
  test('an open order says until when it can be paid, and then that the node has not answered', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const open = await story(shop, quote)
    assert.deepEqual(events(open), ['opened', 'quoted'])
    assert.match(open.tellBuyer, /can be paid until 2026-.*do not pay twice/)
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    const late = await story(shop, quote)
    assert.match(late.tellBuyer, /Do not pay again/)
    assert.match(late.todo ?? '', /^Nothing: the service asks the node until it knows/)
  })

  test('a paid order waits for its buyer, then is delivered, used and over', async (t) => {
    const shop = await aShop(t)
    const quote = await settled(shop)
    const paid = await story(shop, quote)
    assert.deepEqual(events(paid), ['opened', 'quoted', 'paid', 'provisioned'])
    assert.match(paid.tellBuyer, /same Idempotency-Key/)
    assert.match(paid.todo ?? '', /--print/)
    shop.clock.advance(SECOND)
    assert.equal((await shop.repeat())?.kind, 'delivered')
    const delivered = await story(shop, quote)
    assert.equal(events(delivered).at(-1), 'delivered')
    assert.match(delivered.tellBuyer, /the same request with the same key gets the same answer/)
    assert.equal(delivered.todo, null)
    await shop.use(String((await shop.order(quote))?.public_id))
    const used = await story(shop, quote)
    assert.ok(events(used).includes('sealed'))
    assert.match(used.tellBuyer, /cannot be delivered twice/)
    shop.clock.advance(LIFE)
    const over = await story(shop, quote)
    assert.equal(events(over).at(-1), 'ended')
    assert.match(over.tellBuyer, /has ended/)
  })

  test('an order that nobody collected says so once it is over', async (t) => {
    const shop = await aShop(t)
    const quote = await settled(shop)
    shop.clock.advance(LIFE)
    const { tellBuyer, todo } = await story(shop, quote)
    assert.match(tellBuyer, /ended before it was collected/)
    assert.match(todo ?? '', /order refund/)
  })

  test('an unpaid order is told apart from a paid one', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.clock.advance(2 * QUOTE_SECONDS * SECOND)
    await shop.repeat()
    await shop.orders.reconcile(quote.paymentHash, 'lookup')
    assert.equal((await shop.order(quote))?.state, 'dead')
    const dead = await story(shop, quote)
    assert.deepEqual(events(dead), ['opened', 'quoted', 'expired'])
    assert.match(dead.tellBuyer, /expired without being paid/)
  })

  test('an order that is owed says what to do, and once it is delivered when it was paid and when provisioned', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await settled(shop)
    const owed = await story(shop, quote)
    assert.deepEqual(events(owed), ['opened', 'quoted', 'paid', 'unfulfilled'])
    assert.match(owed.tellBuyer, /Do not pay again/)
    assert.match(owed.todo ?? '', /order deliver .* order refund /)
    const paidAt = shop.clock.now()
    shop.clock.advance(DAY)
    const { db, clock } = shop
    await deliverOrder({ db, clock, secrets: secrets(), products }, byId(quote.orderId))
    const repaired = await story(shop, quote)
    assert.deepEqual(events(repaired), ['opened', 'quoted', 'paid', 'unfulfilled', 'provisioned'])
    const at = Object.fromEntries(repaired.happened.map(({ event, at }) => [event, at]))
    assert.deepEqual([at.paid, at.provisioned], [paidAt, clock.now()])
  })

  test('an order that was paid back says when', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await settled(shop)
    shop.clock.advance(DAY)
    const { db, clock } = shop
    await refundOrder({ db, clock, products }, byId(quote.orderId), { reason: 'gone' })
    const refunded = await story(shop, quote)
    assert.deepEqual(events(refunded), ['opened', 'quoted', 'paid', 'unfulfilled', 'refunded'])
    assert.equal(refunded.todo, null)
  })

  test('a deleted order leaves when it was paid, and how it ended', async (t) => {
    const shop = await aShop(t)
    const quote = await settled(shop)
    await shop.repeat()
    await shop.use(String((await shop.order(quote))?.public_id))
    const other = await shop.quote(randomUUID())
    shop.clock.advance(2 * QUOTE_SECONDS * SECOND)
    await shop.orders.reconcile(other.paymentHash, 'lookup')
    shop.clock.advance(LIFE + 31 * DAY)
    await purge(shop)
    assert.deepEqual(await find(shop, quote.orderId), { kind: 'none' })
    const used = await story(shop, quote)
    assert.deepEqual(events(used), ['paid', 'deleted'])
    assert.match(used.tellBuyer, /collected and used/)
    const dead = await story(shop, other)
    assert.deepEqual(events(dead), ['deleted'])
    assert.match(dead.tellBuyer, /without being paid/)
  })
})
