import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Outcome } from '../../src/payment/order.ts'
import type { Orders } from '../../src/payment/orders.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { delivered, events, OTHER_KEY, plainPoll, set, verified, wrong } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  CLIENT,
  DAY,
  delivering,
  KEY,
  known,
  pendingQuote,
  preimageOf,
  type Shop,
} from '../support/shop.ts'
import { query } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const WEAK = 'attempt-0002'
const ELSEWHERE = '198.51.100.9'

/** A purchase under a key, with the credential of an order. */
async function buy(
  shop: Shop,
  ask: {
    key?: string
    credential?: CheckedCredential<string>
    request?: ReturnType<typeof aRequest>
    client?: string
    at?: Orders
  } = {},
): Promise<Outcome | 'new' | 'lost'> {
  const {
    key = OTHER_KEY,
    credential = { kind: 'none' },
    request = aRequest(),
    at = shop.orders,
  } = ask
  const by = aName(key, { client: ask.client ?? CLIENT })
  const decision = await at.decide({ by, request, credential })
  return decision.kind === 'known' ? delivering(decision.act(null)) : decision.kind
}

/** Deletes what is over, as the watcher does. */
async function purge(shop: Shop): Promise<void> {
  const now = shop.clock.now()
  await shop.db.write(unit(...purgeOrders(now, now)))
}

suite('a verified credential under another key', () => {
  test('a verified credential under another key makes that key another name of the order: its repeat is never a new purchase', async (t) => {
    const shop = await aShop(t)
    const { paymentHash, orderId } = await shop.quote()
    const { outcome, publicId } = delivered(
      (await buy(shop, { credential: verified({ paymentHash }) })) as Outcome,
    )
    assert.deepEqual(await buy(shop), outcome, 'the key alone')
    assert.deepEqual(await shop.orders.poll(orderId, { ...plainPoll, key: OTHER_KEY }), outcome)
    assert.deepEqual(await buy(shop, { request: aRequest({ planId: 'long' }) }), {
      kind: 'idempotency key reused with a different request',
    })
    await shop.use(publicId)
    assert.deepEqual(await buy(shop), { kind: 'already delivered' })
    assert.deepEqual(await buy(shop, { credential: verified({ paymentHash }) }), {
      kind: 'already delivered',
    })
  })

  test('a verified credential under another key makes that key worth no more than the first: from another client it takes proof', async (t) => {
    const shop = await aShop(t)
    const { paymentHash, orderId } = await shop.quote()
    const credential = verified({ paymentHash })
    const { outcome } = delivered((await buy(shop, { key: WEAK, credential })) as Outcome)
    const needsProof = { kind: 'proof of payment required' }
    assert.deepEqual(await buy(shop, { key: WEAK, client: ELSEWHERE }), needsProof)
    assert.deepEqual(await buy(shop, { key: WEAK, client: CLIENT }), outcome)
    // Not even where the order is there to be handed out again.
    await query(shop, 'update purchase_order set delivered_at = null')
    assert.deepEqual(await buy(shop, { key: WEAK, client: ELSEWHERE }), needsProof)
    assert.equal((await shop.order({ orderId }))?.delivered_at, null)
    assert.deepEqual(await buy(shop, { key: WEAK, credential, client: ELSEWHERE }), outcome)
  })

  test('a verified credential finds its order where the key names another order that is not decided', async (t) => {
    const shop = await aShop(t)
    const { paymentHash } = await shop.quote()
    const next = pendingQuote(await shop.orders.open(aName(OTHER_KEY), aRequest(), anOffer()))
    delivered((await buy(shop, { credential: verified({ paymentHash }) })) as Outcome)
    assert.deepEqual(await buy(shop), { kind: 'pending', quote: next }, 'and that one stands')
  })

  test('a verified credential whose order is deleted at this moment gives its key no name that leads nowhere: the key buys', async (t) => {
    const shop = await aShop(t)
    const { paymentHash } = await shop.quote()
    await set(shop, `state = 'dead'`)
    shop.clock.advance(31 * DAY)
    const by = aName(OTHER_KEY)
    const { act } = await known(shop.orders, verified({ paymentHash }), { by })
    await purge(shop)
    await act()
    assert.equal((await shop.orders.open(by, aRequest(), anOffer())).kind, 'pending')
  })
})

test('a wrong credential beside an order of its key shows that order, and a preimage proves nothing without its own key', async (t) => {
  const shop = await aShop(t)
  const other = await shop.quote()
  const quote = pendingQuote(await shop.orders.open(aName(OTHER_KEY), aRequest(), anOffer()))
  const credential = wrong(other)
  assert.deepEqual(await buy(shop, { credential }), { kind: 'invalid credential', quote })
  delivered(await shop.repeat({ credential: 'verified' }))
  const preimage = await preimageOf(shop.db, other.paymentHash)
  const shown = await known(shop.orders, credential, { by: aName(WEAK), preimage })
  assert.deepEqual(await shown.act(), { kind: 'invalid credential', quote: null })
  const aliases = await query(shop, 'select name from order_name where name <> order_id')
  assert.deepEqual(aliases, [])
})

suite('a verified credential of a lost order', () => {
  const LOST = { paymentHash: '5c'.repeat(32) }

  test('a verified credential of a lost order raises an alarm, once an hour, and is shown nothing to pay', async (t) => {
    const shop = await aShop(t)
    for (let i = 0; i < 3; i++)
      assert.equal(await buy(shop, { credential: verified(LOST) }), 'lost')
    assert.deepEqual(events(shop, 'order.proven_unknown'), [
      { event: 'order.proven_unknown', ...LOST, product: 'catch', planId: 'spark' },
    ])
    shop.clock.advance(3_600_000)
    await buy(shop, { credential: verified(LOST) })
    assert.equal(events(shop, 'order.proven_unknown').length, 2)
    assert.equal(shop.node.invoices.length, 0)
  })

  test('a verified credential of a lost order still counts as lost where the key has opened a new order since, unless that one is sealed', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    assert.equal(await buy(shop, { key: KEY, credential: verified(LOST) }), 'lost')
    const { publicId } = delivered(await shop.repeat({ credential: 'verified' }))
    await shop.use(publicId)
    assert.deepEqual(await buy(shop, { key: KEY, credential: verified(LOST) }), {
      kind: 'already delivered',
    })
  })
})
