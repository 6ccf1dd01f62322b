/** Delivery by the operator: to a buyer who cannot prove the payment, and never a second time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { type HandedOut, handOutOrder } from '../../src/payment/operator.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { OTHER_KEY } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  DAY,
  LIFE,
  pendingQuote,
  SECRET,
  type Shop,
} from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const secretOf = (hex: string) => createSecrets([new Uint8Array(Buffer.from(hex, 'hex'))])

const products: { catch: Provisioning } = {
  catch: {
    newPublicId: () => newId('catch'),
    provision: () => [],
    capability: ({ publicId, seed }) => ({ publicId, seed: Buffer.from(seed).toString('hex') }),
  },
}

const handOut = (
  { db, clock }: Pick<Shop, 'db' | 'clock'>,
  orderId: string,
  secrets = secretOf(SECRET),
) => handOutOrder({ db, clock, secrets, products }, orderId)

const poll = (shop: Shop, orderId: string) =>
  shop.orders.poll(orderId, { key: null, isPrefetch: false })

async function aSettled(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t)
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  return { shop, quote, orderId: quote.orderId }
}

test('a paid order that nobody has got is handed out once, and to nobody after that', async (t) => {
  const { shop, quote, orderId } = await aSettled(t)
  const given = await handOut(shop, orderId)
  assert.equal(given.kind, 'handed out')
  const { settled, resource } = JSON.parse(given.kind === 'handed out' ? given.body : '')
  const row = await shop.order(quote)
  assert.deepEqual([settled, resource.publicId], [true, row?.public_id])
  assert.match(resource.seed, /^[0-9a-f]{64}$/)
  const at = shop.clock.now()
  assert.deepEqual(
    [row?.delivered_at, row?.delivered_by, row?.sealed_at, row?.seed],
    [at, 'operator', at, null],
  )
  assert.deepEqual(await handOut(shop, orderId), { kind: 'already delivered', at })
  assert.deepEqual(await poll(shop, orderId), { kind: 'already delivered' })
  assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
})

test('one of ten operators at once has the capability', async (t) => {
  const { shop, orderId } = await aSettled(t)
  const given = await Promise.all(Array.from({ length: 10 }, () => handOut(shop, orderId)))
  assert.equal(given.filter(({ kind }) => kind === 'handed out').length, 1)
  const refused = given.filter(({ kind }) => kind !== 'handed out')
  const at = shop.clock.now()
  assert.deepEqual(refused, Array(9).fill({ kind: 'already delivered', at }))
})

test('one of an operator and a buyer at once has the capability', async (t) => {
  for (let i = 0; i < 5; i++) {
    const { shop, orderId } = await aSettled(t)
    const [given, polled] = await Promise.all([handOut(shop, orderId), poll(shop, orderId)])
    const kinds = [given.kind, polled.kind].toSorted()
    const [one] = kinds.filter((kind) => kind !== 'already delivered')
    assert.ok(one === 'handed out' || one === 'delivered', kinds.join())
    assert.equal(kinds.filter((kind) => kind === 'already delivered').length, 1, kinds.join())
  }
})

test('a delivered order is not handed out, used or not', async (t) => {
  const { shop, orderId, quote } = await aSettled(t)
  assert.equal((await poll(shop, orderId)).kind, 'delivered')
  const at = shop.clock.now()
  assert.deepEqual(await handOut(shop, orderId), { kind: 'already delivered', at })
  await shop.use(String((await shop.order(quote))?.public_id))
  assert.deepEqual(await handOut(shop, orderId), { kind: 'already delivered', at })
})

test('an order that is owed is provisioned and handed out', async (t) => {
  const shop = await aShop(t, { isSoldOut: true })
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  assert.equal((await handOut(shop, quote.orderId)).kind, 'handed out')
  assert.equal((await shop.order(quote))?.expires_at, shop.clock.now() + LIFE)
})

test('an order that is not paid, is over, or was made under another secret is not handed out', async (t) => {
  const { shop, orderId } = await aSettled(t)
  assert.deepEqual(await handOut(shop, 'order_none'), { kind: 'order not found' })
  assert.deepEqual(await handOut(shop, orderId, secretOf('22'.repeat(32))), {
    kind: 'other secret',
  })
  const unpaid = await shop.quote('b3c1a1de-5f0a-4f2b-8a53-0d9e8c7b6a54')
  assert.deepEqual(await handOut(shop, unpaid.orderId), { kind: 'not paid', state: 'pending' })
  const end = shop.clock.now() + LIFE
  shop.clock.advance(LIFE + DAY)
  assert.deepEqual(await handOut(shop, orderId), { kind: 'over', at: end })
})

test('an order whose capability ends at this moment is over', async (t) => {
  const { shop, orderId } = await aSettled(t)
  const end = shop.clock.now() + LIFE
  shop.clock.advance(LIFE)
  assert.deepEqual(await handOut(shop, orderId), { kind: 'over', at: end })
})

test('an order that was sealed without a delivery is not handed out', async (t) => {
  const { shop, quote, orderId } = await aSettled(t)
  const sealed = shop.clock.now()
  await shop.use(String((await shop.order(quote))?.public_id))
  assert.deepEqual(await handOut(shop, orderId), { kind: 'already delivered', at: sealed })
  assert.equal((await shop.order(quote))?.delivered_at, null)
})

test('an order whose seed is gone is not handed out', async (t) => {
  const { shop, orderId } = await aSettled(t)
  await shop.db.write(unit({ text: 'update purchase_order set seed = null', values: [] }))
  assert.deepEqual(await handOut(shop, orderId), { kind: 'already delivered', at: null })
})

test('an order that is owed and cannot be provisioned says why, and is still owed', async (t) => {
  const shop = await aShop(t, { isSoldOut: true })
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const { db, clock } = shop
  const secrets = secretOf(SECRET)
  const given = await handOutOrder({ db, clock, secrets, products: {} }, quote.orderId)
  assert.deepEqual(given, { kind: 'refused', reason: 'no product provisions catch' })
  assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
})

test('an extension that is handed out names what it has extended, and another order nothing', async (t) => {
  const shop = await aShop(t, {
    extend: async (_db, { now }) => ({ expiresAt: now + LIFE, statements: [] }),
  })
  const bought = await shop.paid()
  await shop.orders.reconcile(bought.paymentHash, 'stream')
  const publicId = String((await shop.order(bought))?.public_id)
  const request = aRequest({ extendsId: publicId })
  const opened = await shop.orders.open(aName(OTHER_KEY), request, anOffer())
  const quote = pendingQuote(opened)
  await shop.pay(quote)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const extended = await handOut(shop, quote.orderId)
  assert.equal(extended.kind === 'handed out' && extended.extendedId, publicId)
  const sold = await handOut(shop, bought.orderId)
  assert.equal(sold.kind === 'handed out' && sold.extendedId, null)
})

const set = 'update purchase_order set'
/** What another process does between the look at an order and its delivery, and what the operator is told. */
const MEANWHILE: Record<string, [text: string, told: (now: number) => HandedOut]> = {
  'is refunded': [`${set} state = 'refunded'`, () => ({ kind: 'not paid', state: 'refunded' })],
  'is sealed': [`${set} sealed_at = 5`, () => ({ kind: 'already delivered', at: 5 })],
  'is delivered': [`${set} delivered_at = 5`, () => ({ kind: 'already delivered', at: 5 })],
  'loses its end': [`${set} expires_at = null`, () => ({ kind: 'already delivered', at: null })],
  'comes to its end': [`${set} expires_at = $1`, (now) => ({ kind: 'over', at: now })],
  'is deleted': ['delete from purchase_order', () => ({ kind: 'order not found' })],
}
for (const [what, [text, told]] of Object.entries(MEANWHILE)) {
  test(`an order that ${what} while it is handed out is not, and says so`, async (t) => {
    const { shop, quote, orderId } = await aSettled(t)
    const now = shop.clock.now()
    const db = meanwhile(shop.db, { text, values: text.includes('$1') ? [now] : [] })
    assert.deepEqual(await handOut({ ...shop, db }, orderId), told(now))
    assert.notEqual((await shop.order(quote))?.delivered_by, 'operator')
  })
}

test('an order that does not say when it ends cannot be handed out', async (t) => {
  const { shop, quote, orderId } = await aSettled(t)
  await shop.db.write(unit({ text: 'update purchase_order set expires_at = null', values: [] }))
  await assert.rejects(handOut(shop, orderId), /not settled/)
  assert.equal((await shop.order(quote))?.delivered_at, null)
})

test('an order that was to extend a capability, and bought one instead, is handed out with its token', async (t) => {
  const { shop, orderId } = await aSettled(t)
  const text = 'update purchase_order set extends_id = $1'
  await shop.db.write(unit({ text, values: [newId('catch')] }))
  const given = await handOut(shop, orderId)
  assert.ok(given.kind === 'handed out')
  assert.equal(given.extendedId, null)
  assert.match(JSON.parse(given.body).resource.seed, /^[0-9a-f]{64}$/)
})
