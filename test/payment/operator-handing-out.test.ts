/** Delivery by the operator: to a buyer who cannot prove the payment, and never a second time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339 } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { handOutOrder } from '../../src/payment/operator.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { deps } from '../support/operator.ts'
import { byId, many, OTHER_KEY, set, told } from '../support/orders.ts'
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
  secretsOf,
} from '../support/shop.ts'

const products: { catch: Provisioning } = {
  catch: {
    newPublicId: () => newId('catch'),
    provision: () => [],
    capability: ({ publicId, seed }) => ({ publicId, seed: Buffer.from(seed).toString('hex') }),
  },
}

const handOut = (shop: Shop, orderId: string, secrets = secretsOf(SECRET)) =>
  handOutOrder(deps(shop, products, secrets), byId(orderId))

const deliveredAt = (at: number) =>
  new RegExp(`was delivered at ${rfc3339(at)}, and is never delivered twice.+ --settled`)
const endedAt = (at: number) =>
  new RegExp(`ended at ${rfc3339(at)} and was never collected.+ --settled`)

const poll = (shop: Shop, orderId: string) =>
  shop.orders.poll(orderId, { key: null, isPrefetch: false })

async function aSettled(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t)
  const quote = await shop.paidAndSeen()
  return { shop, quote, orderId: quote.orderId }
}

test('a paid order that nobody has got is handed out once, and to nobody after that', async (t) => {
  const { shop, quote, orderId } = await aSettled(t)
  const given = await handOut(shop, orderId)
  const { settled, resource } = JSON.parse(given.body)
  const row = await shop.order(quote)
  assert.deepEqual([settled, resource.publicId], [true, row?.public_id])
  assert.match(resource.seed, /^[0-9a-f]{64}$/)
  const at = shop.clock.now()
  assert.deepEqual(
    [row?.delivered_at, row?.delivered_by, row?.sealed_at, row?.seed],
    [at, 'operator', at, null],
  )
  await assert.rejects(handOut(shop, orderId), deliveredAt(at))
  assert.deepEqual(await poll(shop, orderId), { kind: 'already delivered' })
  assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
})

test('one of ten operators at once has the capability', async (t) => {
  const { shop, orderId } = await aSettled(t)
  const given = await many(10, () => told(handOut(shop, orderId)))
  const refused = given.filter((one) => typeof one === 'string')
  assert.equal(refused.length, 9)
  for (const sentence of refused) assert.match(sentence, deliveredAt(shop.clock.now()))
})

test('one of an operator and a buyer at once has the capability', async (t) => {
  for (let i = 0; i < 5; i++) {
    const { shop, orderId } = await aSettled(t)
    const [given, polled] = await Promise.all([told(handOut(shop, orderId)), poll(shop, orderId)])
    const isRefused = typeof given === 'string'
    assert.equal(polled.kind, isRefused ? 'delivered' : 'already delivered')
    if (isRefused) assert.match(given, deliveredAt(shop.clock.now()))
  }
})

test('an order that is owed is provisioned and handed out, and stays owed where nothing provisions it', async (t) => {
  const shop = await aShop(t, { isSoldOut: true })
  const quote = await shop.paidAndSeen()
  const given = handOutOrder(deps(shop, {}), byId(quote.orderId))
  await assert.rejects(given, /cannot be provisioned: no product provisions catch\./)
  assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  await handOut(shop, quote.orderId)
  assert.equal((await shop.order(quote))?.expires_at, shop.clock.now() + LIFE)
})

test('an order that is unknown, not paid, or was made under another secret is not handed out', async (t) => {
  const { shop, orderId } = await aSettled(t)
  await assert.rejects(handOut(shop, 'order_none'), { kind: 'unknown' })
  await assert.rejects(handOut(shop, orderId, secretsOf('22'.repeat(32))), { kind: 'secret' })
  const unpaid = await shop.quote('b3c1a1de-5f0a-4f2b-8a53-0d9e8c7b6a54')
  await assert.rejects(handOut(shop, unpaid.orderId), /is pending: there is nothing to deliver/)
})

type Settled = { shop: Shop; orderId: string; publicId: string }
const use = ({ shop, publicId }: Settled) => shop.use(publicId)
const collect = async ({ shop, orderId }: Settled) =>
  assert.equal((await poll(shop, orderId)).kind, 'delivered')
/** What has become of a paid order, and what the operator is told of one that was paid at `now`. */
const OVER: Record<string, [(on: Settled) => unknown, (now: number) => RegExp]> = {
  'was delivered': [collect, deliveredAt],
  'was delivered and used': [(on) => collect(on).then(() => use(on)), deliveredAt],
  'was delivered, and has ended since': [
    (on) => collect(on).then(() => on.shop.clock.advance(LIFE)),
    deliveredAt,
  ],
  'was sealed without a delivery': [use, deliveredAt],
  'has lost its seed': [({ shop }) => set(shop, 'seed = null'), () => /is never delivered twice/],
  'does not say when it ends': [({ shop }) => set(shop, 'expires_at = null'), () => /not settled/],
  'ends at this moment': [({ shop }) => shop.clock.advance(LIFE), (now) => endedAt(now + LIFE)],
  'is over': [({ shop }) => shop.clock.advance(LIFE + DAY), (now) => endedAt(now + LIFE)],
}
for (const [what, [become, says]] of Object.entries(OVER)) {
  test(`an order that ${what} is not handed out`, async (t) => {
    const { shop, quote, orderId } = await aSettled(t)
    const now = shop.clock.now()
    await become({ shop, orderId, publicId: String((await shop.order(quote))?.public_id) })
    await assert.rejects(handOut(shop, orderId), says(now))
    assert.notEqual((await shop.order(quote))?.delivered_by, 'operator')
  })
}

test('an extension that is handed out names what it has extended, and another order nothing', async (t) => {
  const shop = await aShop(t, {
    extend: async (_db, { now }) => ({ expiresAt: now + LIFE, statements: [] }),
  })
  const bought = await shop.paidAndSeen()
  const publicId = String((await shop.order(bought))?.public_id)
  const request = aRequest({ extendsId: publicId })
  const opened = await shop.orders.open(aName(OTHER_KEY), request, anOffer())
  const quote = pendingQuote(opened)
  await shop.pay(quote)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const extended = await handOut(shop, quote.orderId)
  assert.equal(extended.extendedId, publicId)
  const sold = await handOut(shop, bought.orderId)
  assert.equal(sold.extendedId, null)
})

const UPDATE = 'update purchase_order set'
/** What another process does between the look at an order and its delivery, and what the operator is told. */
const MEANWHILE: Record<string, [text: string, told: (now: number) => RegExp]> = {
  'is refunded': [`${UPDATE} state = 'refunded'`, () => /is refunded: there is nothing to deliver/],
  'is sealed': [`${UPDATE} sealed_at = 5`, () => deliveredAt(5)],
  'is delivered': [`${UPDATE} delivered_at = 5`, () => deliveredAt(5)],
  'loses its end': [`${UPDATE} expires_at = null`, () => /was delivered, and is never delivered/],
  'comes to its end': [`${UPDATE} expires_at = $1`, endedAt],
  'is deleted': ['delete from purchase_order', () => /no order with that id/],
}
for (const [what, [text, says]] of Object.entries(MEANWHILE)) {
  test(`an order that ${what} while it is handed out is not, and says so`, async (t) => {
    const { shop, quote, orderId } = await aSettled(t)
    const now = shop.clock.now()
    const db = meanwhile(shop.db, { text, values: text.includes('$1') ? [now] : [] })
    await assert.rejects(handOut({ ...shop, db }, orderId), says(now))
    assert.notEqual((await shop.order(quote))?.delivered_by, 'operator')
  })
}

test('an order that was to extend a capability, and bought one instead, is handed out with its token', async (t) => {
  const { shop, orderId } = await aSettled(t)
  await set(shop, `extends_id = '${newId('catch')}'`)
  const given = await handOut(shop, orderId)
  assert.equal(given.extendedId, null)
  assert.match(JSON.parse(given.body).resource.seed, /^[0-9a-f]{64}$/)
})
