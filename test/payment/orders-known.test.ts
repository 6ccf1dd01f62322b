/** What a request may do with an order that is known already, and what it may not. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreAway } from '../../src/db/db.ts'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { overBy } from '../support/deletion.ts'
import { delivered, nodeSays, OTHER_KEY } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  KEY,
  LIFE,
  PLAIN,
  pendingQuote,
  SECOND,
  type Shop,
} from '../support/shop.ts'
import { unit } from '../support/unit.ts'
import { key } from '../support/watching.ts'

/** A key that can be guessed, and an address that opened nothing. */
const WEAK = 'attempt-0001'
const OTHER_WEAK = 'attempt-0002'
const ELSEWHERE = '198.51.100.9'

const VERIFIED = ({ paymentHash }: Quote): CheckedCredential<string> => ({
  ...{ kind: 'verified', order: { paymentHash }, challengeId: '' },
})
const INVALID = ({ paymentHash }: Quote): CheckedCredential<string> => ({
  ...{ kind: 'invalid', reason: 'wrong', paymentHash },
})
const MISMATCHED = ({ paymentHash }: Quote): CheckedCredential<string> => ({
  ...{ kind: 'mismatched', paymentHash },
})
const NONE: CheckedCredential<string> = { kind: 'none' }
const PROVEN = { ...PLAIN, isProven: true }

async function known(
  shop: Shop,
  credential: CheckedCredential<string> = NONE,
  { name = aName(), request = aRequest() } = {},
) {
  const found = await shop.orders.purchase(name).find(request, credential)
  assert.ok(found.kind === 'known')
  return found.order
}

const change = (shop: Shop, { orderId }: Quote, set: string) =>
  shop.db.write(
    unit({ text: `update purchase_order set ${set} where order_id = $1`, values: [orderId] }),
  )

suite('an order that is known', () => {
  test('it says its own id and payment hash, and that it is proven by a right credential alone', async (t) => {
    const shop = await aShop(t)
    const [quote, other] = [await shop.quote(), await shop.quote(OTHER_KEY)]
    const cases = [
      [NONE, false],
      [INVALID(quote), false],
      [MISMATCHED(quote), false],
      [VERIFIED(quote), true],
    ] as const
    for (const [credential, isProven] of cases) {
      const { answer, ...facts } = await known(shop, credential)
      const { orderId, paymentHash } = quote
      assert.deepEqual(facts, { orderId, paymentHash, isProven }, credential.kind)
    }
    assert.equal((await known(shop, NONE, { name: aName(OTHER_KEY) })).orderId, other.orderId)
  })

  test('before the body has arrived it is found by its invoice, or else by its key, with its own plan', async (t) => {
    const shop = await aShop(t)
    const [quote, other] = [await shop.quote(), await shop.quote(OTHER_KEY)]
    const { plan } = anOffer()
    const glance = (hash: string | null, name = KEY) =>
      shop.orders.purchase(aName(name)).glance(hash)
    const facts = ({ orderId, paymentHash }: Quote) => ({ orderId, paymentHash, plan })
    assert.deepEqual(await glance(null), facts(quote))
    assert.deepEqual(await glance(quote.paymentHash), facts(quote))
    assert.deepEqual(await glance(other.paymentHash), facts(other))
    assert.deepEqual(await glance(other.paymentHash, key(9)), facts(other))
    assert.deepEqual(await glance('ff'.repeat(32)), facts(quote))
    assert.equal(await glance(null, key(9)), null)
    assert.equal(await glance('ff'.repeat(32), key(9)), null)
    await change(shop, quote, `plan = '{"planId":'`)
    assert.deepEqual(await glance(null), { ...facts(quote), plan: null })
  })

  test('a poll is admitted with the payment hash of its own order, before the order changes', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await shop.quote(OTHER_KEY)
    const admitted: string[] = []
    const poll = shop.orders.poll(quote.orderId, {
      ...{ key: null, isPrefetch: false },
      admit: async (paymentHash) => {
        admitted.push(paymentHash)
        throw new Error('too many')
      },
    })
    await assert.rejects(poll, /too many/)
    assert.deepEqual(admitted, [quote.paymentHash])
    assert.equal((await shop.order(quote))?.state, 'pending')
    assert.deepEqual(shop.node.lookups, [])
  })

  test('a prefetch shows an invoice of an order that may be collected, and the end of any other', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    const prefetch = (isProven = false) =>
      shop.orders.poll(quote.orderId, {
        ...{ key: null, isPrefetch: true },
        admit: async () => ({ isProven }),
      })
    assert.deepEqual(await prefetch(), { kind: 'pending', quote })
    assert.deepEqual(await prefetch(true), { kind: 'pending', quote })
    const ends = {
      dead: 'order expired',
      paid_unfulfilled: 'checkout unavailable',
      refunded: 'order refunded',
    }
    for (const [state, kind] of Object.entries(ends)) {
      await change(shop, quote, `state = '${state}', is_dead_final = 1`)
      assert.equal((await prefetch()).kind, kind, state)
    }
  })

  test('a proven payment is met by no second invoice, whatever becomes of the order meanwhile', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    const order = await known(shop, VERIFIED(quote))
    await change(shop, quote, `state = 'pending', seed = null, public_id = null`)
    assert.deepEqual(await order.answer(PLAIN), { kind: 'checkout unavailable' })
    await shop.db.write(unit({ text: 'delete from purchase_order', values: [] }))
    assert.deepEqual(await order.answer(PLAIN), { kind: 'order not found' })
  })

  test('a wrong credential of a dead order is told that it has expired, and not that it can be paid', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'dead')
    const expired = { kind: 'order expired' }
    assert.deepEqual(await (await known(shop, INVALID(quote))).answer(PLAIN), expired)
    assert.deepEqual(await (await known(shop, INVALID(quote))).answer(PLAIN), expired)
  })

  test('a request that opens what is open already gets its quote, though the price has changed since', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const dearer = anOffer({ plan: { ...anOffer().plan, priceSats: 101 } })
    const again = await shop.orders.purchase(aName()).open(aRequest(), dearer)
    assert.deepEqual(again, { kind: 'pending', quote })
  })

  test('a payment hash was seen while its order is kept, and ever after', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    assert.equal(await shop.orders.hasSeen(quote.paymentHash), true)
    assert.equal(await shop.orders.hasSeen('ff'.repeat(32)), false)
    const later = overBy(shop.clock.now() + LIFE + SECOND)
    await shop.db.write(unit(...purgeOrders(later, later)))
    assert.equal(await shop.order(quote), undefined)
    assert.equal(await shop.orders.hasSeen(quote.paymentHash), true)
    assert.equal(await shop.orders.hasSeen('ff'.repeat(32)), false)
  })

  test('a request that opens what is opened and paid already is handed it by its own key', async (t) => {
    const shop = await aShop(t)
    const opening = () => shop.orders.purchase(aName(WEAK)).open(aRequest(), anOffer())
    const quote = pendingQuote(await opening())
    await shop.pay(quote)
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    delivered(await opening())
  })
})

suite('who contests an order', () => {
  /** The requests from another address that do not contest an order whose keys can be guessed. */
  const USES: Record<string, (quote: Quote) => CheckedCredential<string>> = {
    'a credential for another request': MISMATCHED,
    'a right credential': VERIFIED,
  }
  for (const [what, credential] of Object.entries(USES)) {
    test(`${what} under its key does not contest an order, wherever it comes from`, async (t) => {
      const shop = await aShop(t)
      const quote = pendingQuote(
        await shop.orders.purchase(aName(WEAK)).open(aRequest(), anOffer()),
      )
      const name = aName(WEAK, { client: ELSEWHERE })
      await (await known(shop, credential(quote), { name })).answer(PLAIN)
      assert.equal((await shop.order(quote))?.contested, 0)
    })
  }

  test('another name of an order does not contest it, though that can be guessed and comes from elsewhere', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'open')
    const name = aName(OTHER_WEAK, { client: ELSEWHERE })
    const invalid = INVALID(quote)
    await (await known(shop, invalid, { name })).answer(PLAIN)
    assert.equal((await shop.order(quote))?.contested, 0)
    await (await known(shop, VERIFIED(quote), { name: aName(OTHER_WEAK) })).answer(PLAIN)
    shop.clock.advance(SECOND)
    const refused = await (await known(shop, NONE, { name })).answer(PLAIN)
    assert.deepEqual(refused, { kind: 'proof of payment required' })
    assert.equal((await shop.order(quote))?.contested, 0)
  })
})

test('an order of one URL that has another name is delivered to its credential there, and not to the preimage', async (t) => {
  const shop = await aShop(t)
  const request = aRequest({ bodySha256: '' })
  const quote = pendingQuote(await shop.orders.oneUrl.open(request, anOffer()))
  const name = aName(OTHER_KEY)
  const named = await known(shop, VERIFIED(quote), { name, request })
  const byName = (credential: CheckedCredential<string> = NONE) =>
    known(shop, credential, { name, request })
  // The name is made before the order is settled, which the store refuses at first.
  const write = shop.db.write
  shop.db.write = (ask) =>
    'provision' in ask.statements ? Promise.reject(new StoreAway('full')) : write(ask)
  await assert.rejects(named.answer(PLAIN), /full/)
  shop.db.write = write
  const refused = { kind: 'proof of payment required' }
  assert.deepEqual(await (await byName()).answer(PROVEN), refused)
  assert.equal((await shop.order(quote))?.state, 'pending')

  const { outcome } = delivered(await named.answer(PLAIN))
  assert.deepEqual(await (await byName()).answer(PROVEN), refused)
  assert.deepEqual(await (await byName(VERIFIED(quote))).answer(PLAIN), outcome)
  assert.deepEqual(await (await byName(VERIFIED(quote))).answer(PROVEN), outcome)
  const poll = { key: null, isPrefetch: false, admit: async () => ({ isProven: true }) }
  assert.deepEqual(await shop.orders.poll(quote.orderId, poll), { kind: 'order not found' })
})
