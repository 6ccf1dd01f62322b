import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { formerOrderIds } from '../../src/payment/idempotency.ts'
import type { Outcome } from '../../src/payment/order.ts'
import type { PollAsk } from '../../src/payment/orders.ts'
import { CONTESTED } from '../../src/payment/store.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { delivered, kinds, many, nodeSays, QUOTE_LIFE } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  CLIENT,
  DAY,
  pendingQuote,
  SECOND,
  SECRET,
  type Shop,
} from '../support/shop.ts'
import { query } from '../support/store.ts'

const WEAK = 'order-0001'
const STRONG = '5f8a2c1e-0d3b-4a6f-9e7c-1b2d3e4f5a6b'
const ELSEWHERE = '198.51.100.9'
const MINUTE = 60 * SECOND
const PROOF_REQUIRED = { kind: 'proof of payment required' }

const open = async (shop: Shop, key = WEAK, client: string | null = CLIENT) =>
  pendingQuote(await shop.orders.purchase(aName(key, { client })).open(aRequest(), anOffer()))

const poll = (shop: Shop, orderId: string, ask: Partial<PollAsk> = {}): Promise<Outcome> =>
  shop.orders.poll(orderId, { key: null, client: CLIENT, isPrefetch: false, ...ask })

const proven = { admit: async () => ({ isProven: true }) }

const settle = async (shop: Shop, quote: Awaited<ReturnType<typeof open>>): Promise<void> => {
  await shop.pay(quote)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
}

const contestedIn = async (shop: Shop): Promise<unknown> =>
  (await shop.db.read('select contested from purchase_order'))[0]?.contested

/** An order of a guessable key that somebody else has asked for before it was paid. */
async function aContestedOrder(t: TestContext) {
  const shop = await aShop(t)
  const quote = await open(shop)
  const seen = await shop.repeat({ key: WEAK, client: ELSEWHERE })
  assert.equal(seen?.kind === 'pending' && seen.quote.proofRequired, true)
  return { shop, quote }
}

suite('a key that can be guessed', () => {
  test('a key that can be guessed is one order and one invoice wherever it comes from, and says when that costs a proof', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop)
    const again = await shop.repeat({ key: WEAK })
    assert.deepEqual(again, { kind: 'pending', quote }, 'from the same address')
    const elsewhere = await shop.repeat({ key: WEAK, client: ELSEWHERE })
    assert.deepEqual(elsewhere, { kind: 'pending', quote: { ...quote, proofRequired: true } })
    assert.deepEqual(await shop.repeat({ key: WEAK }), elsewhere, 'for good')
    assert.equal(shop.node.invoices.length, 1)
    const polled = await poll(shop, quote.orderId)
    assert.equal(polled.kind === 'pending' && polled.quote.proofRequired, true)
  })

  test('a thief who opens first and waits for the victim to pay collects nothing', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop, WEAK, ELSEWHERE)
    pendingQuote((await shop.repeat({ key: WEAK })) as Outcome)
    await settle(shop, quote)
    for (const client of [ELSEWHERE, CLIENT, null]) {
      assert.deepEqual(await poll(shop, quote.orderId, { client }), PROOF_REQUIRED)
      assert.deepEqual(await poll(shop, quote.orderId, { client, key: WEAK }), PROOF_REQUIRED)
      assert.deepEqual(await shop.repeat({ key: WEAK, client }), PROOF_REQUIRED)
      const bad = await shop.repeat({ key: WEAK, client, credential: 'invalid' })
      assert.deepEqual(bad, { kind: 'invalid credential', quote: null })
    }
    assert.equal((await shop.order(quote))?.delivered_at, null)
    delivered(await shop.repeat({ key: WEAK, credential: 'verified' }))
  })

  test('a thief who comes when the victim has paid collects nothing, and the victim polls as ever', async (t) => {
    for (const key of [null, WEAK]) {
      const shop = await aShop(t)
      const quote = await open(shop)
      await settle(shop, quote)
      assert.deepEqual(await shop.repeat({ key: WEAK, client: ELSEWHERE }), PROOF_REQUIRED)
      assert.deepEqual(await poll(shop, quote.orderId, { key, client: ELSEWHERE }), PROOF_REQUIRED)
      assert.deepEqual(await shop.repeat({ key: WEAK }), PROOF_REQUIRED, 'the key alone is known')
      delivered(await poll(shop, quote.orderId, { key }))
    }
  })

  test('a key that can be guessed does not contest an order by a request that was refused', async (t) => {
    const shop = await aShop(t)
    await open(shop)
    const request = aRequest({ bodySha256: '11'.repeat(32) })
    assert.deepEqual(await shop.repeat({ key: WEAK, client: ELSEWHERE, request }), {
      kind: 'idempotency key reused with a different request',
    })
    assert.equal(await contestedIn(shop), 0)
  })

  test('a key that can be guessed does not contest its order when it comes with proof from elsewhere', async (t) => {
    const shop = await aShop(t)
    await open(shop)
    const { outcome } = delivered(
      await shop.repeat({ key: WEAK, client: ELSEWHERE, credential: 'verified' }),
    )
    assert.equal(await contestedIn(shop), 0)
    assert.deepEqual(await shop.repeat({ key: WEAK, client: ELSEWHERE, isProven: true }), outcome)
  })

  test('a key that can be guessed counts as from another address wherever the address is not exact', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop, WEAK, null)
    await shop.repeat({ key: WEAK, client: null })
    await settle(shop, quote)
    assert.deepEqual(await shop.repeat({ key: WEAK, client: null }), PROOF_REQUIRED)
    assert.deepEqual(await poll(shop, quote.orderId, { client: null }), PROOF_REQUIRED)
    delivered(await poll(shop, quote.orderId, { client: null, ...proven }))
  })

  test('a key that can be guessed asks for proof from its first quote on, if nobody can tell whose it is', async (t) => {
    const shop = await aShop(t)
    assert.equal((await open(shop, WEAK, null)).proofRequired, true)
    assert.equal(await contestedIn(shop), CONTESTED.beforePayment)
  })

  test('when two addresses open an order at once, the one that did not open it contests it', async (t) => {
    const shop = await aShop(t)
    const [first, second] = await Promise.all([open(shop), open(shop, WEAK, ELSEWHERE)])
    assert.equal(first.orderId, second.orderId)
    assert.equal(second.proofRequired, true)
    assert.equal(await contestedIn(shop), CONTESTED.beforePayment)
  })

  test('a key that can be guessed repeats no answer by itself, and for ten minutes together with the order’s id', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop)
    await settle(shop, quote)
    const { outcome } = delivered(await shop.repeat({ key: WEAK }))
    assert.deepEqual(await shop.repeat({ key: WEAK }), PROOF_REQUIRED)
    assert.deepEqual(await poll(shop, quote.orderId), { kind: 'already delivered' })
    const byBoth = (client: string) => poll(shop, quote.orderId, { key: WEAK, client })
    shop.clock.advance(10 * MINUTE - 1)
    assert.deepEqual(await byBoth(ELSEWHERE), outcome, 'a buyer who moved')
    shop.clock.advance(1)
    assert.deepEqual(await byBoth(CLIENT), PROOF_REQUIRED)
    assert.deepEqual(await shop.repeat({ key: WEAK, isProven: true }), outcome)
    assert.deepEqual(await shop.repeat({ key: WEAK, credential: 'verified' }), outcome)
    assert.deepEqual(await poll(shop, quote.orderId, proven), outcome)
    shop.clock.advance(DAY)
    for (const over of [byBoth(CLIENT), shop.repeat({ key: WEAK, isProven: true })]) {
      assert.deepEqual(await over, { kind: 'already delivered' })
    }
  })

  test('a key that can be guessed repeats nothing of a contested order, even together with the order’s id', async (t) => {
    const { shop, quote } = await aContestedOrder(t)
    await settle(shop, quote)
    const { outcome } = delivered(await shop.repeat({ key: WEAK, credential: 'verified' }))
    for (const client of [CLIENT, ELSEWHERE]) {
      assert.deepEqual(await poll(shop, quote.orderId, { key: WEAK, client }), PROOF_REQUIRED)
      assert.deepEqual(await poll(shop, quote.orderId, { client }), PROOF_REQUIRED)
    }
    assert.deepEqual(await poll(shop, quote.orderId, proven), outcome)
  })
})

suite('a contested order', () => {
  test('a contested order is handed to a preimage alone, by poll and by purchase, and settles by it', async (t) => {
    for (const byPoll of [true, false]) {
      const { shop, quote } = await aContestedOrder(t)
      shop.node.lookups.length = 0
      const { outcome } = delivered(
        byPoll
          ? await poll(shop, quote.orderId, proven)
          : await shop.repeat({ key: WEAK, client: ELSEWHERE, isProven: true }),
      )
      assert.equal((await shop.order(quote))?.settled_by, 'preimage')
      assert.deepEqual(shop.node.lookups, [], 'the node was not asked')
      assert.deepEqual(await poll(shop, quote.orderId, proven), outcome, 'and again')
    }
  })

  test('a contested order that is dead is settled by its preimage, and by nothing else', async (t) => {
    const { shop, quote } = await aContestedOrder(t)
    shop.clock.advance(QUOTE_LIFE)
    nodeSays(shop, 'dead')
    assert.deepEqual(await poll(shop, quote.orderId), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat({ key: WEAK }), { kind: 'order expired' })
    delivered(await poll(shop, quote.orderId, proven))
  })

  test('a contested order that could not be provisioned tells a stranger nothing of it', async (t) => {
    const { shop, quote } = await aContestedOrder(t)
    const soldOut = shop.another({ isSoldOut: true })
    await shop.pay(quote)
    await soldOut.reconcile(quote.paymentHash, 'stream')
    assert.deepEqual(await poll(shop, quote.orderId), PROOF_REQUIRED)
    assert.deepEqual(await poll(shop, quote.orderId, proven), { kind: 'checkout unavailable' })
  })

  test('a contested order gives nothing to a declared prefetch, proof or not', async (t) => {
    const { shop, quote } = await aContestedOrder(t)
    const prefetched = await poll(shop, quote.orderId, { isPrefetch: true, ...proven })
    assert.equal(prefetched.kind, 'pending')
    assert.equal((await shop.order(quote))?.state, 'pending')
  })
})

suite('an order that is never contested', () => {
  test('an order whose key nobody can guess is never contested', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop, STRONG)
    assert.deepEqual(await shop.repeat({ key: STRONG, client: ELSEWHERE }), {
      kind: 'pending',
      quote,
    })
    await settle(shop, quote)
    const { outcome } = delivered(await shop.repeat({ key: STRONG, client: null }))
    shop.clock.advance(DAY - 1)
    assert.deepEqual(await shop.repeat({ key: STRONG, client: ELSEWHERE }), outcome)
  })

  test('an order that was opened before the client was noted is never contested', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop)
    await query(shop, 'update purchase_order set opened_by = null')
    await shop.repeat({ key: WEAK, client: ELSEWHERE })
    assert.equal(await contestedIn(shop), 0)
    await settle(shop, quote)
    delivered(await poll(shop, quote.orderId, { client: ELSEWHERE }))
  })

  test('an old order at the address of its own is never contested, where a new one has its key', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop)
    const secrets = createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])
    const [old = ''] = formerOrderIds(secrets, aName(WEAK))
    await query(shop, 'update purchase_order set order_id = $1, opened_by = null', old)
    const thief = await open(shop, WEAK, ELSEWHERE)
    assert.notEqual(thief.paymentHash, quote.paymentHash)
    const mine = await shop.repeat({ key: WEAK })
    assert.equal(mine?.kind === 'pending' && mine.quote.paymentHash, quote.paymentHash)
  })
})

suite('two addresses at once', () => {
  test('two addresses with one guessable key are one order, contested whoever was first', async (t) => {
    const shop = await aShop(t)
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        (i % 3 === 0 ? elsewhere : shop.orders)
          .purchase(aName(WEAK, { client: i % 2 === 0 ? CLIENT : ELSEWHERE }))
          .open(aRequest(), anOffer()),
      ),
    )
    assert.equal(new Set(outcomes.map((one) => pendingQuote(one).paymentHash)).size, 1)
    assert.equal(await contestedIn(shop), 2)
    const quote = pendingQuote(outcomes[0] as Outcome)
    await settle(shop, quote)
    assert.deepEqual(await poll(shop, quote.orderId), PROOF_REQUIRED)
  })

  test('the key from elsewhere and the payment leave an order that a stranger never gets', async (t) => {
    for (let round = 0; round < 10; round++) {
      const shop = await aShop(t)
      const quote = await open(shop)
      await shop.pay(quote)
      const [, , stranger] = await Promise.all([
        shop.orders.reconcile(quote.paymentHash, 'stream'),
        shop.another().reconcile(quote.paymentHash, 'lookup'),
        shop.repeat({ key: WEAK, client: ELSEWHERE }),
      ])
      assert.notEqual(stranger?.kind, 'delivered')
      const contested = await contestedIn(shop)
      assert.ok(contested === 1 || contested === 2)
      // Whoever saw the payment first decides what the opener's poll is worth.
      const expected = contested === 1 ? 'delivered' : PROOF_REQUIRED.kind
      assert.equal((await poll(shop, quote.orderId)).kind, expected)
    }
  })

  test('the key from elsewhere and the first delivery hand it to the opener or to nobody', async (t) => {
    const shop = await aShop(t)
    const quote = await open(shop)
    await settle(shop, quote)
    const elsewhere = shop.another()
    const [polls, strangers] = await Promise.all([
      many(20, () => poll(shop, quote.orderId)),
      many(20, () => shop.repeat({ key: WEAK, client: ELSEWHERE, at: elsewhere })),
    ])
    assert.deepEqual(new Set(strangers.map((one) => one?.kind)), new Set([PROOF_REQUIRED.kind]))
    assert.equal(kinds(polls).filter((kind) => kind === 'delivered').length, 1)
  })

  test('80 polls of a contested order hand it to those with the preimage, the same bytes each', async (t) => {
    const { shop, quote } = await aContestedOrder(t)
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 80 }, (_, i) =>
        (i % 2 === 0 ? shop.orders : elsewhere).poll(quote.orderId, {
          key: i % 3 === 0 ? WEAK : null,
          client: CLIENT,
          isPrefetch: false,
          ...(i % 4 === 0 ? proven : {}),
        }),
      ),
    )
    const handed = outcomes.filter(({ kind }) => kind === 'delivered')
    assert.equal(handed.length, 20)
    assert.equal(new Set(handed.map((one) => JSON.stringify(one))).size, 1)
    assert.equal((await shop.provisioned()).length, 1)
  })
})
