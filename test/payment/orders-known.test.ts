/** What a request may do with an order that is known already, and what it may not. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { mismatched, nodeSays, OTHER_KEY, verified, wrong } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  CLIENT,
  KEY,
  known,
  LIFE,
  preimageOf,
  SECOND,
  type Shop,
} from '../support/shop.ts'
import { unit } from '../support/unit.ts'
import { key } from '../support/watching.ts'

/** A key that can be guessed, and an address that opened nothing. */
const OTHER_WEAK = 'attempt-0002'
const ELSEWHERE = '198.51.100.9'

const NONE: CheckedCredential<string> = { kind: 'none' }
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
      [wrong(quote), false],
      [mismatched(quote), false],
      [verified(quote), true],
    ] as const
    const { orderId, paymentHash } = quote
    for (const [credential, isProven] of cases) {
      const { facts } = await known(shop.orders, credential)
      const expected = { kind: 'known', orderId, isProven, hasWrongPreimage: false }
      assert.deepEqual(facts, expected, credential.kind)
    }
    const preimage = await preimageOf(shop.db, paymentHash)
    for (const [shown, isProven] of [
      [preimage, true],
      ['00'.repeat(32), false],
      ['', false],
    ] as const) {
      const { facts } = await known(shop.orders, NONE, { preimage: shown })
      assert.deepEqual([facts.isProven, facts.hasWrongPreimage], [isProven, !isProven])
    }
    const { facts } = await known(shop.orders, NONE, { by: aName(OTHER_KEY) })
    assert.equal(facts.orderId, other.orderId)
  })

  test('before the body has arrived it is found by its invoice, or else by its key, with its own plan', async (t) => {
    const shop = await aShop(t)
    const [quote, other] = [await shop.quote(), await shop.quote(OTHER_KEY)]
    const { plan } = anOffer()
    const early = async (paymentHash: string | null, name = KEY) => {
      const credential = { kind: 'invalid', reason: '', paymentHash } as const
      const { orderId, plan } = await shop.orders.lookAhead({ by: aName(name), credential })
      return orderId === null ? null : { orderId, plan }
    }
    const facts = ({ orderId }: Quote) => ({ orderId, plan })
    assert.deepEqual(await early(null), facts(quote))
    assert.deepEqual(await early(quote.paymentHash), facts(quote))
    assert.deepEqual(await early(other.paymentHash), facts(other))
    assert.deepEqual(await early(other.paymentHash, key(9)), facts(other))
    assert.deepEqual(await early('ff'.repeat(32)), facts(quote))
    assert.equal(await early(null, key(9)), null)
    assert.equal(await early('ff'.repeat(32), key(9)), null)
    await change(shop, quote, `plan = '{"planId":'`)
    assert.deepEqual(await early(null), { ...facts(quote), plan: null })
  })

  test('before the body has arrived only the preimage of an order that we have proves it', async (t) => {
    const shop = await aShop(t)
    const { paymentHash } = await shop.quote()
    const isProven = async (
      credential: CheckedCredential<unknown>,
      preimage: string | null = null,
    ) => (await shop.orders.lookAhead({ by: aName(), credential, preimage })).isProven
    const right = await preimageOf(shop.db, paymentHash)
    assert.deepEqual(
      await Promise.all([
        ...[isProven(verified({ paymentHash })), isProven(mismatched({ paymentHash }))],
        ...[isProven(NONE, right), isProven(verified({ paymentHash: 'ff'.repeat(32) }))],
        ...[isProven(wrong({ paymentHash })), isProven(NONE, '00')],
      ]),
      [true, true, true, false, false, false],
    )
  })

  test('before the body has arrived nothing proves a purchase that is over: its body buys nothing more', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const preimage = await preimageOf(shop.db, quote.paymentHash)
    const ask = { by: aName(), credential: verified(quote), preimage }
    assert.equal((await shop.orders.lookAhead(ask)).isProven, true)
    shop.clock.advance(LIFE)
    const { isProven, orderId } = await shop.orders.lookAhead(ask)
    assert.deepEqual([isProven, orderId], [false, quote.orderId])
  })

  test('a poll is admitted with what it proves, before the order changes', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const admitted: unknown[] = []
    for (const preimage of [null, await preimageOf(shop.db, quote.paymentHash), 'x']) {
      const poll = shop.orders.poll(quote.orderId, {
        key: null,
        isPrefetch: false,
        preimage,
        admit: async (shown) => {
          admitted.push(shown)
          throw new Error('too many')
        },
      })
      await assert.rejects(poll, /too many/)
    }
    assert.deepEqual(admitted, [
      { isProven: false, hasWrongPreimage: false },
      { isProven: true, hasWrongPreimage: false },
      { isProven: false, hasWrongPreimage: true },
    ])
    assert.equal((await shop.order(quote))?.state, 'pending')
    assert.deepEqual(shop.node.lookups, [])
  })

  test('a prefetch shows an invoice of an order that may be collected, and the end of any other', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const shown = await preimageOf(shop.db, quote.paymentHash)
    const prefetch = (isProven = false) =>
      shop.orders.poll(quote.orderId, {
        key: isProven ? KEY : null,
        isPrefetch: true,
        preimage: isProven ? shown : null,
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
    const quote = await shop.paidAndSeen()
    await change(shop, quote, `state = 'paid_unfulfilled'`)
    const order = await known(shop.orders, verified(quote))
    await change(shop, quote, `state = 'pending', seed = null, public_id = null`)
    assert.deepEqual(await order.act(), { kind: 'checkout unavailable' })
    await shop.db.write(unit({ text: 'delete from purchase_order', values: [] }))
    assert.deepEqual(await order.act(), { kind: 'order not found' })
  })

  test('a wrong credential of a dead order is told that it has expired, and not that it can be paid', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'dead')
    const expired = { kind: 'order expired' }
    assert.deepEqual(await (await known(shop.orders, wrong(quote))).act(), expired)
    assert.deepEqual(await (await known(shop.orders, wrong(quote))).act(), expired)
  })

  test('a new key opens an order with a preimage of another one, kept or deleted, and not with one that is unknown', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const [right, unknown] = [await preimageOf(shop.db, quote.paymentHash), 'ff'.repeat(32)]
    const ask = { by: aName('another-key'), request: aRequest(), credential: NONE }
    const asked = async (preimage: string) => (await shop.orders.decide({ ...ask, preimage })).kind
    assert.deepEqual([await asked(right), await asked(unknown)], ['new', 'lost'])
    const later = shop.clock.now() + LIFE + SECOND
    await shop.db.write(unit(...purgeOrders(later, later)))
    assert.equal(await shop.order(quote), undefined)
    assert.deepEqual([await asked(right), await asked(unknown)], ['new', 'lost'])
  })
})

suite('who contests an order', () => {
  test('whoever is shown the quote contests the order, also by another name of it and with a wrong credential', async (t) => {
    for (const client of [CLIENT, ELSEWHERE, null]) {
      const shop = await aShop(t)
      const quote = await shop.quote()
      nodeSays(shop, 'open')
      const by = aName(OTHER_WEAK, { client })
      const shown = await (await known(shop.orders, wrong(quote), { by })).act()
      assert.equal(shown.kind === 'invalid credential' && shown.quote?.orderId, quote.orderId)
      assert.equal((await shop.order(quote))?.contested, client === CLIENT ? 0 : 1)
    }
  })
})
