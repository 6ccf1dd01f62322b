/**
 * Orders whose product had something reserved, and released it when they died: the bytes that come with the proof of
 * the payment reserve it again.
 */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import type { Quote } from '../../src/payment/quote.ts'
import type { OrderRow } from '../../src/payment/store.ts'
import {
  delivered,
  events,
  keyPoll,
  mismatched,
  nodeSays,
  OTHER_KEY,
  plainPoll,
  verified,
} from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  KEY,
  known,
  pendingQuote,
  preimageOf,
  QUOTE_SECONDS,
  SECOND,
  type Shop,
} from '../support/shop.ts'
import { key } from '../support/watching.ts'

const BODY = new TextEncoder().encode('what was reserved')
const UNAVAILABLE = { kind: 'checkout unavailable' }

type Restored = Parameters<NonNullable<Provisioning['restore']>>[0]

/** A product that provisions what is reserved for the order, and nothing without it. */
async function aReservingShop(t: TestContext) {
  const restored: Restored[] = []
  const shop = await aShop(t, {
    provisions: ({ orderId }) => [
      { text: 'delete from meta where name = $1', values: [`reserved ${orderId}`], expect: 1 },
    ],
    restore: (ask) => {
      restored.push(ask)
      return [
        {
          text: `insert into meta (name, value) values ($1, 'reserved') on conflict (name) do nothing`,
          values: [`reserved ${ask.orderId}`],
        },
      ]
    },
  })
  const facts = async (quote: Quote) => {
    const { state, settled_at, settled_by, delivered_at, unfulfilled_at } =
      (await shop.order(quote)) ?? {}
    return { state, settled_at, settled_by, delivered_at, unfulfilled_at }
  }
  return { shop, restored, facts }
}

/** What has become of an order, from which the product has nothing reserved, when its proof comes. */
const BECAME: Record<string, (shop: Shop, quote: Quote) => Promise<void>> = {
  'still waits for its payment': async () => undefined,
  'is dead': async (shop, { paymentHash }) => {
    nodeSays(shop, 'dead')
    await shop.orders.reconcile(paymentHash, 'lookup')
  },
  'is dead by a guess': async (shop, { paymentHash }) => {
    nodeSays(shop, 'dead by guess')
    await shop.orders.reconcile(paymentHash, 'lookup')
  },
  'is owed': async (shop, { paymentHash }) => {
    nodeSays(shop, 'settled')
    await shop.orders.reconcile(paymentHash, 'stream')
  },
}

/** Each way to prove the payment with the bytes of the purchase. */
const PROOFS: Record<string, { name: string; isProven: boolean }> = {
  'a credential under its key': { name: KEY, isProven: false },
  'a credential under another key': { name: OTHER_KEY, isProven: false },
  'a preimage under its key': { name: KEY, isProven: true },
}

suite('an order whose reservation was released', () => {
  for (const [what, become] of Object.entries(BECAME)) {
    for (const [how, { name, isProven }] of Object.entries(PROOFS)) {
      test(`an order that ${what} is delivered to ${how}, whose bytes are reserved again`, async (t) => {
        const { shop, restored, facts } = await aReservingShop(t)
        const quote = await shop.quote()
        const neighbour = await shop.quote(key(7))
        await become(shop, quote)
        const before = await facts(quote)
        const beside = await facts(neighbour)
        shop.clock.advance(5 * SECOND)
        shop.node.lookups.length = 0

        const preimage = isProven ? await preimageOf(shop.db, quote.paymentHash) : null
        const repeated = async () => {
          const by = aName(name)
          const asked = isProven ? ({ kind: 'none' } as const) : verified(quote)
          return (await known(shop.orders, asked, { by, preimage })).act(BODY)
        }
        const { publicId, outcome } = delivered(await repeated())
        const now = shop.clock.now()
        assert.deepEqual(await facts(quote), {
          state: 'settled',
          settled_at: now,
          settled_by: 'preimage',
          delivered_at: now,
          unfulfilled_at: before.state === 'paid_unfulfilled' ? before.settled_at : null,
        })
        assert.deepEqual(restored, [
          { orderId: quote.orderId, clientNetwork: '203.0.113', body: BODY },
        ])
        assert.deepEqual(await shop.provisioned(), [publicId])
        assert.deepEqual(await facts(neighbour), beside)
        assert.deepEqual(shop.node.lookups, [])

        assert.deepEqual(await repeated(), outcome)
        assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), {
          kind: 'already delivered',
        })
        assert.deepEqual(await shop.provisioned(), [publicId])
      })
    }
  }

  test('a poll brings no bytes: its preimage notes what is owed once, and leaves it to a repeat of the purchase', async (t) => {
    const { shop, restored, facts } = await aReservingShop(t)
    const quote = await shop.quote()
    await BECAME['is dead']?.(shop, quote)
    const preimage = await preimageOf(shop.db, quote.paymentHash)
    const poll = () => shop.orders.poll(quote.orderId, { ...keyPoll, preimage })
    assert.deepEqual(await poll(), UNAVAILABLE)
    const owed = await facts(quote)
    assert.deepEqual([owed.state, owed.settled_by], ['paid_unfulfilled', 'preimage'])
    shop.clock.advance(SECOND)
    assert.deepEqual(await poll(), UNAVAILABLE)
    assert.deepEqual(await facts(quote), owed)
    assert.equal(events(shop, 'order.paid_unfulfilled').length, 1)
    assert.deepEqual(restored, [])

    const repeated = await known(shop.orders, { kind: 'none' }, { preimage })
    delivered(await repeated.act(BODY))
    assert.equal((await facts(quote)).unfulfilled_at, owed.settled_at)
  })

  test('bytes without a proof reserve nothing, and the order stays what it is', async (t) => {
    for (const become of Object.values(BECAME)) {
      const { shop, restored, facts } = await aReservingShop(t)
      const quote = await shop.quote()
      await become(shop, quote)
      const before = await facts(quote)
      await (await known(shop.orders)).act(BODY)
      assert.deepEqual(await facts(quote), before)
      assert.deepEqual(restored, [])
    }
  })

  const SETTLED_BY_ANOTHER: Record<string, string> = {
    'still waits for its payment': 'settled',
    'is dead': 'settled',
    'is dead by a guess': 'settled',
    'is owed': 'paid_unfulfilled',
  }
  for (const [what, state] of Object.entries(SETTLED_BY_ANOTHER)) {
    test(`a credential for another request hands out nothing of an order that ${what}, and leaves it ${state}`, async (t) => {
      const { shop, facts } = await aReservingShop(t)
      const quote = await shop.quote()
      await BECAME[what]?.(shop, quote)
      const order = await known(shop.orders, mismatched(quote))
      const refused = { kind: 'invalid credential', quote: null }
      for (let i = 0; i < 2; i++) {
        assert.equal(order.facts.isProven, false)
        assert.deepEqual(await order.act(BODY), refused)
        const row = await facts(quote)
        assert.deepEqual([row.state, row.delivered_at], [state, null])
        assert.equal(row.settled_by, state === 'settled' ? 'preimage' : 'stream')
      }
      assert.equal((await shop.provisioned()).length, state === 'settled' ? 1 : 0)
    })
  }

  test('a look-up that read its order before it became owed settles nothing', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await shop.paid()
    const read = (await shop.order(quote)) as OrderRow
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    const owed = await shop.order(quote)
    assert.equal(owed?.state, 'paid_unfulfilled')
    shop.clock.advance(SECOND)
    assert.equal(await shop.another().lookUp(read, 'lookup'), true)
    assert.deepEqual(await shop.order(quote), owed)
    assert.deepEqual(await shop.provisioned(), [])
  })

  test('a proven order of a product that is not sold here is owed, and said to be unavailable', async (t) => {
    const shop = await aShop(t)
    const name = aName()
    const request = aRequest({ product: 'pulse' })
    const quote = pendingQuote(await shop.orders.open(name, request, anOffer()))
    const proven = await known(shop.orders, verified(quote), { request })
    assert.deepEqual(await proven.act(), UNAVAILABLE)
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  })
})

test('an order ends together with its reservation: while that cannot be freed, the order stays open', async (t) => {
  let isStuck = true
  const shop = await aShop(t, {
    release: (orderId) => [
      {
        text: `insert into meta (name, value) values ($1, '')`,
        values: [`released ${orderId}`],
        expect: isStuck ? 2 : 1,
      },
    ],
  })
  const quote = await shop.quote()
  const released = async () =>
    (await shop.db.read(`select name from meta where name like 'released %'`)).length
  shop.clock.advance(QUOTE_SECONDS * SECOND)
  nodeSays(shop, 'dead')
  await shop.orders.reconcile(quote.paymentHash, 'lookup')
  assert.deepEqual([(await shop.order(quote))?.state, await released()], ['pending', 0])
  isStuck = false
  shop.clock.advance(SECOND)
  await shop.orders.reconcile(quote.paymentHash, 'lookup')
  assert.deepEqual([(await shop.order(quote))?.state, await released()], ['dead', 1])
})
