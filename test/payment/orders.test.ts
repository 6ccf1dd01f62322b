import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Json } from '../../src/lib/jcs.ts'
import { type InvoiceState, UnknownInvoice } from '../../src/lightning/lightning.ts'
import { type OrderRequest, type Outcome, REPLAY_MS } from '../../src/payment/orders.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  KEY,
  LIFE,
  pendingQuote,
  QUOTE_SECONDS,
  SECOND,
  SECRET,
  type Shop,
} from '../support/shop.ts'
import { until } from '../support/until.ts'

const OTHER_KEY = '9c1b7a52-6f0e-4d83-b2a4-8e7f6d5c4b3a'
const QUOTE_LIFE = QUOTE_SECONDS * SECOND
/** Longer than a claim on an opening order holds. */
const CLAIM = 31 * SECOND

const plainPoll = { key: null, isPrefetch: false }
const keyPoll = { key: KEY, isPrefetch: false }
const many = <T>(count: number, ask: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, ask))
const kinds = (outcomes: Outcome[]): string[] => outcomes.map(({ kind }) => kind).sort()
const events = (shop: Shop, event: string) => shop.logged.filter((line) => line.event === event)

/** The node's answer to every look-up from now on. */
function nodeSays(shop: Shop, state: InvoiceState): void {
  shop.node.replaced.lookupInvoice = async () => ({ state })
}

/** The capability that was delivered, with the outcome that any repeat must equal. */
function delivered(outcome: Outcome | null) {
  assert.equal(outcome?.kind, 'delivered')
  const body = outcome?.kind === 'delivered' ? outcome.body : ''
  const { resource } = JSON.parse(body) as { resource: Record<string, string> }
  const { publicId = '', expiresAt = '', ownerToken = '' } = resource
  return { outcome, publicId, expiresAt, ownerToken }
}

suite('opening an order', () => {
  test('makes one invoice for exactly the price, and quotes it', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const invoice = decodeInvoice(quote.bolt11)
    assert.deepEqual(quote, {
      orderId: quote.orderId,
      product: 'catch',
      planId: 'spark',
      amountSats: 100,
      bolt11: quote.bolt11,
      paymentHash: invoice.paymentHash,
      expiresAt: Math.floor(shop.clock.now() / SECOND) * SECOND + QUOTE_LIFE,
      network: 'regtest',
      memo: 'Mayfly CATCH spark',
      durationSeconds: LIFE / SECOND,
    })
    assert.deepEqual(
      [invoice.amountMsat, invoice.description, invoice.expiresAt],
      [100_000, 'Mayfly CATCH spark', quote.expiresAt],
    )
    assert.deepEqual(shop.node.invoices, [quote.paymentHash])
  })

  test('makes one invoice, however many ask at once, here and elsewhere', async (t) => {
    const shop = await aShop(t)
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 === 0 ? shop.orders : elsewhere).open(aName(), aRequest(), anOffer()),
      ),
    )
    const quote = await shop.quote()
    assert.deepEqual(
      outcomes,
      outcomes.map(() => ({ kind: 'pending', quote })),
    )
    assert.deepEqual(shop.node.invoices, [quote.paymentHash])
  })

  test('a repeat gets the same quote, also when the plan has another price by now', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const dearer = anOffer({ plan: { planId: 'spark', priceSats: 900, durationSeconds: 60 } })
    assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
    assert.deepEqual(await shop.orders.open(aName(), aRequest(), dearer), {
      kind: 'pending',
      quote,
    })
    assert.equal(shop.node.invoices.length, 1)
  })

  test('a key that opened nothing yet is nobody’s', async (t) => {
    const shop = await aShop(t)
    assert.equal(await shop.repeat(), null)
  })

  const others: [string, Partial<OrderRequest>][] = [
    ['plan', { planId: 'standard' }],
    ['body', { bodySha256: '01'.repeat(32) }],
    ['terms', { terms: { readLimit: 2 } satisfies Json }],
    ['product', { product: 'pulse' }],
  ]
  for (const [what, change] of others) {
    test(`refuses a key that was used with another ${what}, and changes nothing`, async (t) => {
      const shop = await aShop(t)
      const quote = await shop.quote()
      const before = await shop.order(quote)
      const refusal = { kind: 'idempotency key reused with a different request' }
      assert.deepEqual(await shop.repeat({ request: aRequest(change) }), refusal)
      assert.deepEqual(await shop.orders.open(aName(), aRequest(change), anOffer()), refusal)
      assert.deepEqual(await shop.order(quote), before)
      assert.equal(shop.node.invoices.length, 1)
    })
  }

  test('of two requests that differ and come at once with one key, one is refused', async (t) => {
    const shop = await aShop(t)
    const outcomes = await Promise.all([
      shop.orders.open(aName(), aRequest(), anOffer()),
      shop.orders.open(aName(), aRequest({ planId: 'long' }), anOffer()),
    ])
    assert.deepEqual(kinds(outcomes), [
      'idempotency key reused with a different request',
      'pending',
    ])
  })

  test('a node that makes no invoice leaves no order, and the same key works later', async (t) => {
    const shop = await aShop(t)
    shop.node.replaced.createInvoice = () => Promise.reject(new Error('no route to node'))
    const outcomes = await many(5, () => shop.orders.open(aName(), aRequest(), anOffer()))
    assert.deepEqual(
      outcomes,
      outcomes.map(() => ({ kind: 'checkout unavailable' })),
    )
    assert.deepEqual(await shop.db.read('select * from purchase_order'), [])
    assert.equal(events(shop, 'lightning.invoice_failed').length, 1)

    delete shop.node.replaced.createInvoice
    await until('the node is asked again', shop.health.isHealthy)
    const quote = await shop.quote()
    assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
  })

  test('an invoice for another amount than asked is not shown to anybody', async (t) => {
    const shop = await aShop(t)
    shop.node.replaced.createInvoice = (ask) =>
      shop.node.simulator.createInvoice({ ...ask, amountMsat: ask.amountMsat + 1 })
    assert.deepEqual(await shop.orders.open(aName(), aRequest(), anOffer()), {
      kind: 'checkout unavailable',
    })
    assert.deepEqual(await shop.db.read('select * from purchase_order'), [])
  })

  test('opens nothing while the node is out of sync, and repeats what is open', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.node.replaced.info = async () => ({ network: 'regtest', synced: false })
    shop.health.doubt()
    assert.deepEqual(await shop.orders.open(aName(OTHER_KEY), aRequest(), anOffer()), {
      kind: 'checkout unavailable',
    })
    assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
  })

  test('takes over from a process that died before it had an invoice', async (t) => {
    const shop = await aShop(t)
    await deadOpening(shop)
    assert.deepEqual(await shop.repeat(), null)
    shop.clock.advance(CLAIM)
    const [first, second] = await Promise.all([
      shop.another().open(aName(), aRequest(), anOffer()),
      shop.another().open(aName(), aRequest(), anOffer()),
    ])
    assert.deepEqual(first, second)
    assert.deepEqual(shop.node.invoices, [pendingQuote(first).paymentHash])
  })

  test('a poll does not see an order before it has its invoice', async (t) => {
    const shop = await aShop(t)
    await deadOpening(shop)
    const [order] = await shop.db.read('select order_id from purchase_order')
    assert.deepEqual(await shop.orders.poll(String(order?.order_id), plainPoll), {
      kind: 'order not found',
    })
  })

  test('an instance that was taken over from answers with the invoice that counts', async (t) => {
    const shop = await aShop(t)
    const node = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    shop.node.replaced.createInvoice = async (ask) => {
      delete shop.node.replaced.createInvoice
      asked.resolve()
      await node.promise
      return shop.node.simulator.createInvoice(ask)
    }
    const slow = shop.orders.open(aName(), aRequest(), anOffer())
    await asked.promise
    shop.clock.advance(CLAIM)
    const quick = await shop.another().open(aName(), aRequest(), anOffer())
    node.resolve()
    assert.deepEqual(await slow, quick)
    assert.equal(pendingQuote(quick).paymentHash, shop.node.invoices[0])
    assert.deepEqual(events(shop, 'lightning.invoice_failed'), [])
    assert.equal(shop.health.isHealthy(), true)
  })

  /** An order whose process went away while the node was making the invoice. */
  async function deadOpening(shop: Shop): Promise<void> {
    const asked = Promise.withResolvers<void>()
    const never = Promise.withResolvers<never>()
    shop.node.replaced.createInvoice = () => {
      asked.resolve()
      return never.promise
    }
    void shop.another().open(aName(), aRequest(), anOffer())
    await asked.promise
    delete shop.node.replaced.createInvoice
  }
})

suite('settling an order', () => {
  test('provisions with the settlement, and the capability lives from then on', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    shop.clock.advance(5 * SECOND)
    const settledAt = shop.clock.now()
    const { publicId, expiresAt } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(Date.parse(expiresAt), settledAt + LIFE)
    const order = await shop.order(quote)
    assert.deepEqual(
      [order?.state, order?.settled_at, order?.settled_by, order?.public_id, order?.expires_at],
      ['settled', settledAt, 'lookup', publicId, settledAt + LIFE],
    )
  })

  test('provisions once, whoever learns of it, and however many at once', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const elsewhere = shop.another()
    await Promise.all([
      ...Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? shop.orders : elsewhere).reconcile(quote.paymentHash, 'stream'),
      ),
      ...Array.from({ length: 5 }, () => shop.orders.poll(quote.orderId, plainPoll)),
    ])
    assert.equal((await shop.provisioned()).length, 1)
    assert.equal(events(shop, 'order.settled').length, 1)
  })

  test('a payment that is found long after expiresAt is still provisioned', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    shop.clock.advance(QUOTE_LIFE + 3 * 24 * 3600 * SECOND)
    const { publicId, expiresAt } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(Date.parse(expiresAt), shop.clock.now() + LIFE)
  })

  test('an order past expiresAt stays pending until the node says that it is dead', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'open')
    for (const wait of [QUOTE_LIFE, SECOND, 3600 * SECOND]) {
      shop.clock.advance(wait)
      assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
      assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
    }
    nodeSays(shop, 'dead')
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat(), { kind: 'order expired' })
    assert.equal(shop.node.invoices.length, 1)
  })

  test('a payment hash that the node does not know is an error, and never dead', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.node.replaced.lookupInvoice = () => Promise.reject(new UnknownInvoice())
    shop.clock.advance(365 * 24 * 3600 * SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
    const [line] = events(shop, 'order.invoice_unknown')
    assert.equal(line?.orderId, quote.orderId)

    nodeSays(shop, 'settled')
    shop.clock.advance(SECOND)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('while the node is away the order is pending, and nothing is lost', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    shop.node.replaced.lookupInvoice = () => Promise.reject(new Error('connection refused'))
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
    delete shop.node.replaced.lookupInvoice
    shop.clock.advance(SECOND)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('a settlement after dead is honoured', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'dead')
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    nodeSays(shop, 'settled')
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    const { publicId } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.provisioned(), [publicId])
  })

  test('a hint is looked up, and one that is not true changes nothing', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const before = await shop.order(quote)
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    await shop.orders.reconcile('00'.repeat(32), 'stream')
    assert.deepEqual(await shop.order(quote), before)
    assert.deepEqual(shop.node.lookups, [quote.paymentHash])
  })

  test('a payment that cannot be honoured is kept as such, and logged once', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await shop.paid()
    await many(10, () => shop.orders.reconcile(quote.paymentHash, 'stream'))
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), {
      kind: 'checkout unavailable',
    })
    assert.deepEqual(await shop.repeat(), { kind: 'checkout unavailable' })
    assert.deepEqual(events(shop, 'order.paid_unfulfilled'), [
      {
        event: 'order.paid_unfulfilled',
        orderId: quote.orderId,
        product: 'catch',
        amountSats: 100,
        by: 'stream',
      },
    ])
    const order = await shop.order(quote)
    assert.deepEqual(
      [order?.state, order?.settled_at, order?.settled_by, order?.seed, order?.public_id],
      ['paid_unfulfilled', shop.clock.now() - SECOND, 'stream', null, null],
    )
    assert.deepEqual(await shop.provisioned(), [])
  })

  test('the node is asked about an order at most once a second, whoever asks', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    const elsewhere = shop.another()
    const ask = () =>
      Promise.all([
        ...Array.from({ length: 10 }, () => shop.orders.poll(orderId, plainPoll)),
        ...Array.from({ length: 10 }, () => elsewhere.poll(orderId, keyPoll)),
        ...Array.from({ length: 10 }, () => shop.repeat()),
      ])
    const counts: number[] = []
    for (const wait of [0, 0, SECOND - 1, 1, 1, SECOND]) {
      shop.clock.advance(wait)
      await ask()
      counts.push(shop.node.lookups.length)
    }
    assert.deepEqual(counts, [1, 1, 1, 2, 2, 3])
  })
})

suite('delivering an order', () => {
  test('a plain poll delivers exactly once, however many race', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? shop.orders : elsewhere).poll(orderId, plainPoll),
      ),
    )
    assert.equal(kinds(outcomes).filter((kind) => kind === 'delivered').length, 1)
    assert.deepEqual(await shop.orders.poll(orderId, plainPoll), { kind: 'already delivered' })
    assert.equal(events(shop, 'order.delivered').length, 1)
  })

  test('whoever has the key gets the same bytes again, by poll and by repeat', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(3600 * SECOND)
    const outcomes = [
      await shop.orders.poll(orderId, keyPoll),
      await shop.repeat(),
      await shop.orders.open(aName(), aRequest(), anOffer()),
      await shop.another().poll(orderId, keyPoll),
    ]
    assert.deepEqual(
      outcomes,
      outcomes.map(() => outcome),
    )
  })

  test('the repeat of a settled order is its first delivery', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    delivered(await shop.repeat())
    assert.deepEqual(await shop.orders.poll(orderId, plainPoll), { kind: 'already delivered' })
  })

  test('a poll with another order’s key finds nothing, and consumes nothing', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    await shop.paid(OTHER_KEY)
    assert.deepEqual(await shop.orders.poll(orderId, { key: OTHER_KEY, isPrefetch: false }), {
      kind: 'order not found',
    })
    delivered(await shop.orders.poll(orderId, plainPoll))
  })

  test('an order that nobody opened is not found', async (t) => {
    const shop = await aShop(t)
    for (const orderId of ['order_0000000000000000000000', '', `' or 1=1 --`]) {
      assert.deepEqual(await shop.orders.poll(orderId, plainPoll), { kind: 'order not found' })
    }
  })

  test('a prefetch never delivers', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const prefetched = await shop.orders.poll(quote.orderId, { key: null, isPrefetch: true })
    assert.deepEqual(prefetched, { kind: 'pending', quote })
    assert.equal((await shop.order(quote))?.delivered_at, null)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('the first use of a token seals the replay, and wipes the seed', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { publicId } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
    await shop.use(publicId)
    assert.deepEqual(await shop.orders.poll(quote.orderId, keyPoll), { kind: 'already delivered' })
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
    const order = await shop.order(quote)
    assert.deepEqual([order?.seed, order?.sealed_at], [null, shop.clock.now()])
    assert.equal(shop.node.invoices.length, 1)
  })

  test('24 hours after the first delivery the replay is sealed', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(REPLAY_MS - 1)
    assert.deepEqual(await shop.repeat(), outcome)
    shop.clock.advance(1)
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
    assert.deepEqual(await shop.orders.poll(orderId, keyPoll), { kind: 'already delivered' })
  })

  test('the expiry of the capability seals the replay', async (t) => {
    const shop = await aShop(t)
    const { orderId, paymentHash } = await shop.paid()
    await shop.orders.reconcile(paymentHash, 'stream')
    shop.clock.advance(LIFE - SECOND)
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(SECOND - 1)
    assert.deepEqual(await shop.repeat(), outcome)
    shop.clock.advance(1)
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
  })

  test('what nobody collected can be claimed until the capability expires', async (t) => {
    const shop = await aShop(t)
    const early = await shop.paid()
    const late = await shop.paid(OTHER_KEY)
    for (const { paymentHash } of [early, late]) await shop.orders.reconcile(paymentHash, 'stream')
    shop.clock.advance(LIFE - 1)
    delivered(await shop.orders.poll(early.orderId, plainPoll))
    shop.clock.advance(1)
    assert.deepEqual(await shop.orders.poll(late.orderId, plainPoll), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat({ key: OTHER_KEY }), { kind: 'order expired' })
  })

  test('nothing that was quoted or delivered is logged', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { publicId, ownerToken } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
    const log = JSON.stringify(shop.logged)
    for (const secret of [KEY, quote.bolt11, quote.paymentHash, publicId, ownerToken]) {
      assert.equal(log.includes(secret), false)
    }
  })
})

suite('a credential', () => {
  test('that proves the payment settles and delivers, without a call to the node', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'paid' }))
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.deepEqual(shop.node.lookups, [])
    const order = await shop.order(quote)
    const now = shop.clock.now()
    assert.deepEqual(
      [order?.state, order?.settled_by, order?.settled_at, order?.delivered_at],
      ['settled', 'preimage', now, now],
    )
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), {
      kind: 'already delivered',
    })
  })

  test('that comes 50 times at once provisions once, and gets the same bytes each time', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        shop.repeat({ credential: 'paid', at: i % 2 === 0 ? shop.orders : elsewhere }),
      ),
    )
    const { outcome, publicId } = delivered(outcomes[0] ?? null)
    assert.deepEqual(
      outcomes,
      outcomes.map(() => outcome),
    )
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(events(shop, 'order.delivered').length, 1)
  })

  test('and the settlement that the node tells of, at once, are one settlement', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const [outcome] = await Promise.all([
      shop.repeat({ credential: 'paid' }),
      shop.orders.reconcile(quote.paymentHash, 'stream'),
      shop.orders.reconcile(quote.paymentHash, 'lookup'),
    ])
    assert.deepEqual(await shop.provisioned(), [delivered(outcome).publicId])
    assert.equal(events(shop, 'order.settled').length, 1)
  })

  test('that is refused consumes nothing, whatever the state of the order', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const refused = { kind: 'credential refused', quote }
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
    assert.equal((await shop.order(quote))?.state, 'pending')
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
  })

  test('of an order whose replay is sealed gets no challenge to pay again', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'paid' }))
    await shop.use(publicId)
    for (const credential of ['paid', 'refused', 'none'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), { kind: 'already delivered' })
    }
  })

  test('of another plan than the order’s is refused as such', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const request = aRequest({ planId: 'long' })
    assert.deepEqual(await shop.repeat({ request, credential: 'paid' }), {
      kind: 'idempotency key reused with a different request',
    })
    assert.equal((await shop.order(quote))?.state, 'pending')
  })

  test('after expiresAt is worth what the node says', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    const paid = () => shop.repeat({ credential: 'paid' })
    nodeSays(shop, 'open')
    assert.deepEqual(await paid(), { kind: 'checkout unavailable' })
    shop.node.replaced.lookupInvoice = () => Promise.reject(new Error('connection refused'))
    assert.deepEqual(await paid(), { kind: 'checkout unavailable' })
    nodeSays(shop, 'settled')
    delivered(await paid())
  })

  test('after expiresAt of an invoice that is dead finds the order expired', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    nodeSays(shop, 'dead')
    assert.deepEqual(await shop.repeat({ credential: 'paid' }), { kind: 'order expired' })
  })

  test('that cannot be honoured is owed, and logged once', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await shop.quote()
    const outcomes = await many(10, () => shop.repeat({ credential: 'paid' }))
    assert.deepEqual(
      outcomes,
      outcomes.map(() => ({ kind: 'checkout unavailable' })),
    )
    assert.equal(events(shop, 'order.paid_unfulfilled').length, 1)
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  })

  test('finds its order from anywhere, with the key that it was opened with', async (t) => {
    const shop = await aShop(t)
    const weak = 'order-0001'
    const quote = await shop.quote(weak)
    const found = await shop.orders.findPaid(quote.paymentHash, weak)
    assert.equal(found?.orderId, quote.orderId)
    assert.equal(await shop.orders.findPaid(quote.paymentHash, KEY), null)
    assert.equal(await shop.orders.findPaid('00'.repeat(32), weak), null)
  })
})

suite('changing the secret', () => {
  const NEW = '22'.repeat(32)
  const FOREIGN = '33'.repeat(32)

  test('re-encrypts the seeds, so that the new secret opens them alone', async (t) => {
    const shop = await aShop(t)
    const { orderId, paymentHash } = await shop.paid()
    await shop.orders.reconcile(paymentHash, 'stream')
    assert.equal(await shop.another({ secrets: [NEW, SECRET] }).reseal(), 0)
    delivered(await shop.another({ secrets: [NEW] }).poll(orderId, plainPoll))
  })

  test('finds an order by its key under the previous secret too', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const both = shop.another({ secrets: [NEW, SECRET] })
    await both.reseal()
    const { outcome } = delivered(await shop.repeat({ at: both }))
    assert.deepEqual(await both.poll(quote.orderId, keyPoll), outcome)
    assert.equal(shop.node.invoices.length, 1)
  })

  test('needs the previous secret for as long as an order of it is open or uncollected', async (t) => {
    const shop = await aShop(t)
    const foreign = () => shop.another({ secrets: [FOREIGN] }).reseal()
    const settled = await shop.paid()
    await shop.orders.reconcile(settled.paymentHash, 'stream')
    const pending = await shop.quote(OTHER_KEY)
    assert.equal(await foreign(), 2)
    assert.equal(await shop.orders.reseal(), 0)

    const { publicId } = delivered(await shop.orders.poll(settled.orderId, plainPoll))
    await shop.use(publicId)
    assert.equal(await foreign(), 1)
    nodeSays(shop, 'dead')
    await shop.orders.poll(pending.orderId, plainPoll)
    assert.equal(await foreign(), 0)
  })
})
