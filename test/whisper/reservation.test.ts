import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { Lightning } from '../../src/lightning/lightning.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { createNodeHealth } from '../../src/payment/health.ts'
import { createOrders, type Orders, type Outcome } from '../../src/payment/orders.ts'
import { createSecrets } from '../../src/payment/secrets.ts'
import { WHISPER_PLANS, type WhisperCapability } from '../../src/whisper/schema.ts'
import { createWhisper } from '../../src/whisper/service.ts'
import { testClock } from '../support/server.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NETWORK = '203.0.113'
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

test('bytes are counted while they wait, and no longer once they are paid', async (t) => {
  const shop = await aShop(t)
  const [one, two] = [await shop.quote({ bytes: 100 }), await shop.quote({ bytes: 50 })]
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 150, all: 150 })
  await shop.pay(one)
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 50, all: 50 })
  await shop.pay(two)
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 0, all: 0 })
  assert.equal(await shop.ciphertexts(), 2)
})

test('settling twice, or at once, frees the bytes once', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  await shop.quote({ bytes: 30 })
  await shop.simulator.pay(quote.bolt11)
  await Promise.all(
    Array.from({ length: 20 }, () => shop.orders.reconcile(quote.paymentHash, 'stream')),
  )
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 30, all: 30 })
  assert.equal(await shop.ciphertexts(), 2)
})

test('a quote that dies frees its bytes once, and leaves others alone', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  await shop.quote({ bytes: 40, network: '192.0.2' })
  shop.lightning.lookupInvoice = async () => ({ state: 'dead' })
  for (let i = 0; i < 3; i++) await shop.orders.reconcile(quote.paymentHash, 'lookup')
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 0, '192.0.2': 40, all: 40 })
  assert.equal(await shop.ciphertexts(), 1)
})

test('an invoice that cannot be made frees the bytes', async (t) => {
  const shop = await aShop(t)
  shop.lightning.createInvoice = () => Promise.reject(new Error('no route to node'))
  const outcome = await shop.open({ bytes: 100 })
  assert.equal(outcome.kind, 'checkout unavailable')
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 0, all: 0 })
  assert.equal(await shop.ciphertexts(), 0)
})

test('an order that a dead process left without an invoice frees its bytes', async (t) => {
  const shop = await aShop(t)
  let hold = (): void => undefined
  const { createInvoice } = shop.lightning
  shop.lightning.createInvoice = async (ask) => {
    await new Promise<void>((resolve) => {
      hold = resolve
    })
    return createInvoice(ask)
  }
  const opening = shop.open({ bytes: 100 })
  await shop.until(async () => (await shop.ciphertexts()) === 1)
  await shop.orders.dropAbandoned(shop.clock.now() - MINUTE)
  assert.equal(await shop.ciphertexts(), 1)
  await shop.orders.dropAbandoned(shop.clock.now() + 1)
  assert.equal(await shop.ciphertexts(), 0)
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 0, all: 0 })
  await shop.until(() => hold !== undefined)
  hold()
  assert.equal((await opening).kind, 'checkout unavailable')
})

test('paid after its bytes were let go of, an order is kept as paid and unfulfilled', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  const { lookupInvoice } = shop.lightning
  shop.lightning.lookupInvoice = async () => ({ state: 'dead' })
  await shop.orders.reconcile(quote.paymentHash, 'lookup')
  shop.lightning.lookupInvoice = lookupInvoice
  await shop.simulator.pay(quote.bolt11)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const [order] = await shop.db.read('select state from purchase_order')
  assert.equal(order?.state, 'paid_unfulfilled')
  assert.deepEqual(await shop.db.read('select * from whisper'), [])
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 0, all: 0 })
})

test('of many at once for the last room, as many fit as there is room', async (t) => {
  const shop = await aShop(t, { perNetwork: 1000, inAll: 1500 })
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, i) => shop.open({ bytes: 100, network: `10.0.${i % 3}` })),
  )
  const kinds = outcomes.map(({ kind }) => kind)
  assert.equal(kinds.filter((kind) => kind === 'pending').length, 15)
  assert.equal(kinds.filter((kind) => kind === 'rate limited').length, 45)
  assert.equal((await shop.unpaid()).all, 1500)
  assert.equal(await shop.ciphertexts(), 15)
  const [invoices] = await shop.db.read('select count(*) as n from simulator_invoice')
  assert.equal(invoices?.n, 15)
})

test('a purge deletes what is over with its bytes, and the counters of nobody', async (t) => {
  const shop = await aShop(t)
  const whispers: WhisperCapability[] = []
  // More than one round of the purge.
  for (let i = 0; i < 101; i++) {
    whispers.push(await shop.pay(await shop.quote({ bytes: 30 })))
  }
  const waiting = await shop.quote({ bytes: 31, network: '192.0.2' })
  assert.equal(await shop.service.purge(), 0)
  shop.clock.advance(DAY)
  const [purged, same] = await Promise.all([shop.service.purge(), shop.service.purge()])
  assert.deepEqual([purged, same], [101, 101])
  assert.deepEqual(await shop.db.read('select public_id from whisper'), [])
  assert.equal(await shop.ciphertexts(), 1)
  assert.deepEqual(await shop.unpaid(), { '192.0.2': 31, all: 31 })
  assert.ok(waiting)
  for (const { publicId, readToken } of whispers.slice(0, 2)) {
    assert.equal(await shop.service.find(publicId, readToken), null)
  }
})

test('a read and the purge of an expired one do not meet', async (t) => {
  const shop = await aShop(t)
  const { publicId, readToken, expiresAt } = await shop.pay(await shop.quote({ bytes: 30 }))
  shop.clock.advance(Date.parse(expiresAt) - shop.clock.now() - 2_000)
  const found = await shop.service.find(publicId, readToken)
  assert.ok(found)
  assert.equal((await shop.service.read(found)).kind, 'revealed')
  shop.clock.advance(2_000)
  const [reading] = await Promise.all([shop.service.read(found), shop.service.purge()])
  assert.equal(reading.kind, 'gone')
})

type Ask = { bytes: number; network?: string }

/** Orders of WHISPERs on a store of their own, with a node that a test may change. */
async function aShop(t: TestContext, unpaidBytes = { perNetwork: 1e6, inAll: 1e7 }) {
  const clock = testClock()
  const db = await openDatabase(await aDatabaseUrl(t))
  const ending = new AbortController()
  t.after(async () => {
    ending.abort()
    await db.close()
  })
  const simulator = await createSimulator({ db, clock })
  // A node that is asked for its invoices, as most are.
  const { signInvoice: _, ...lightning }: Lightning = simulator
  const health = createNodeHealth(lightning, 'regtest', silent)
  await health.start(ending.signal)
  const service = createWhisper({ db, clock, unpaidBytes })
  const orders: Orders = createOrders({
    db,
    lightning,
    health,
    secrets: createSecrets([new Uint8Array(32)]),
    clock,
    log: silent,
    products: { whisper: service.provisioning },
    quoteSeconds: 900,
  })

  function open({ bytes, network = NETWORK }: Ask): Promise<Outcome> {
    const ciphertext = randomBytes(bytes)
    return orders.open(
      { route: '/api/payments/whisper', key: randomUUID(), clientAddress: `${network}.7` },
      {
        product: 'whisper',
        planId: 'spark',
        terms: { readLimit: 3, revealAt: null },
        bodySha256: randomBytes(32).toString('hex'),
      },
      {
        plan: WHISPER_PLANS.spark,
        memo: 'Mayfly WHISPER spark',
        clientNetwork: network,
        reserve: (orderId) => service.reserve({ orderId, clientNetwork: network, ciphertext }),
      },
    )
  }

  return {
    db,
    clock,
    simulator,
    lightning,
    orders,
    service,
    open,
    async quote(ask: Ask) {
      const outcome = await open(ask)
      if (outcome.kind !== 'pending') throw new Error(`not pending: ${outcome.kind}`)
      return outcome.quote
    },
    async pay(quote: { bolt11: string; paymentHash: string; orderId: string }) {
      await simulator.pay(quote.bolt11)
      await orders.reconcile(quote.paymentHash, 'stream')
      const outcome = await orders.poll(quote.orderId, { key: null, isPrefetch: false })
      if (outcome.kind !== 'delivered') throw new Error(`not delivered: ${outcome.kind}`)
      return (JSON.parse(outcome.body) as { resource: WhisperCapability }).resource
    },
    async unpaid(): Promise<Record<string, unknown>> {
      const rows = await db.read('select scope, byte_count from whisper_unpaid')
      return Object.fromEntries(rows.map((row) => [row.scope, row.byte_count]))
    },
    async ciphertexts() {
      const [row] = await db.read('select count(*) as n from whisper_ciphertext')
      return row?.n
    },
    async until(condition: () => unknown) {
      while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
    },
  }
}
