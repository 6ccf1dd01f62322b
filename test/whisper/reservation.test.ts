import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, type TestContext, test } from 'node:test'
import { attempt, type Db } from '../../src/db/db.ts'
import { newId } from '../../src/lib/ids.ts'
import type { Lightning } from '../../src/lightning/lightning.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { createNodeHealth } from '../../src/payment/health.ts'
import type { Outcome } from '../../src/payment/order.ts'
import { createOrders, type Orders } from '../../src/payment/orders.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { createSwitches } from '../../src/switches/switches.ts'
import { WHISPER_PROVISIONING } from '../../src/whisper/provisioning.ts'
import { WHISPER_PLANS, type WhisperCapability } from '../../src/whisper/schema.ts'
import { createWhisper } from '../../src/whisper/service.ts'
import type { UnpaidBytes } from '../../src/whisper/unpaid.ts'
import { testClock } from '../support/server.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NETWORK = '203.0.113'
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

test('settling twice, or at once, frees the bytes once', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  await shop.quote({ bytes: 30 })
  await shop.simulator.pay(quote.bolt11)
  await Promise.all(
    Array.from({ length: 20 }, () => shop.orders.reconcile(quote.paymentHash, 'stream')),
  )
  assert.deepEqual(await shop.unpaid(), { [NETWORK]: 30 })
  assert.equal(await shop.ciphertexts(), 2)
})

test('a quote that dies frees its bytes once, and leaves others alone', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  await shop.quote({ bytes: 40, network: '192.0.2' })
  shop.lightning.lookupInvoice = async () => ({ state: 'dead', isFinal: true })
  for (let i = 0; i < 3; i++) await shop.orders.reconcile(quote.paymentHash, 'lookup')
  assert.deepEqual(await shop.unpaid(), { '192.0.2': 40 })
  assert.equal(await shop.ciphertexts(), 1)
})

test('an invoice that cannot be made keeps no bytes', async (t) => {
  const shop = await aShop(t)
  shop.lightning.createInvoice = () => Promise.reject(new Error('no route to node'))
  const outcome = await shop.open({ bytes: 100 })
  assert.equal(outcome.kind, 'checkout unavailable')
  assert.deepEqual(await shop.unpaid(), {})
  assert.equal(await shop.ciphertexts(), 0)
})

test('an order paid after its bytes were let go of is recorded as paid and unfulfilled', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote({ bytes: 100 })
  const { lookupInvoice } = shop.lightning
  shop.lightning.lookupInvoice = async () => ({ state: 'dead', isFinal: true })
  await shop.orders.reconcile(quote.paymentHash, 'lookup')
  shop.lightning.lookupInvoice = lookupInvoice
  await shop.simulator.pay(quote.bolt11)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const [order] = await shop.db.read('select state from purchase_order')
  assert.equal(order?.state, 'paid_unfulfilled')
  assert.deepEqual(await shop.db.read('select * from whisper'), [])
  assert.deepEqual(await shop.unpaid(), {})
})

test('as many of 60 at once are sold as there is room for', async (t) => {
  const shop = await aShop(t, { perNetwork: 10_000, inAll: 8_000 })
  const outcomes = await Promise.all(Array.from({ length: 60 }, () => shop.open({ bytes: 100 })))
  const kinds = outcomes.map(({ kind }) => kind)
  // An eighth of the common 6 000, and of the 2 000 for small bodies.
  assert.deepEqual(await shop.parts(), { common: 700, small: 200 })
  assert.equal(kinds.filter((kind) => kind === 'pending').length, 9)
  assert.equal(kinds.filter((kind) => kind === 'rate limited').length, 51)
  assert.equal(await shop.ciphertexts(), 9)
  const [orders] = await shop.db.read('select count(*) as n from purchase_order')
  assert.equal(orders?.n, 9)
})

test('a purge deletes what is over with its bytes, and nobody else', async (t) => {
  const shop = await aShop(t)
  const whispers: WhisperCapability[] = []
  // More than one round of the purge.
  for (let i = 0; i < 101; i++) {
    whispers.push(await shop.pay(await shop.quote({ bytes: 30 })))
  }
  const waiting = await shop.quote({ bytes: 31, network: '192.0.2' })
  assert.equal(await shop.purge(), 0)
  shop.clock.advance(DAY)
  assert.equal(await shop.purge(), 101)
  assert.deepEqual(await shop.db.read('select public_id from whisper'), [])
  assert.equal(await shop.ciphertexts(), 1)
  assert.deepEqual(await shop.unpaid(), { '192.0.2': 31 })
  assert.ok(waiting)
  for (const { publicId, readToken } of whispers.slice(0, 2)) {
    assert.equal(await shop.service.find(publicId, readToken), null)
  }
})

suite('the room for unpaid bytes', () => {
  const KIB = 1024
  const MIB = 1024 * KIB
  const SMALL = 64 * KIB
  /** 48 MiB for all bodies, 16 MiB for small ones alone. */
  const ROOM = { perNetwork: 64 * MIB, inAll: 64 * MIB }
  const isSold = ({ kind }: Outcome): boolean => kind === 'pending'

  /** Quotes for as much as this network gets: large bodies, then smaller ones. */
  async function takeAll(shop: Shop, network: string): Promise<number> {
    let taken = 0
    for (const bytes of [4 * MIB, 512 * KIB, SMALL]) {
      while (isSold(await shop.open({ bytes, network }))) taken += bytes
    }
    return taken
  }

  test('a small secret of a newcomer is sold after 100 networks have taken all they can', async (t) => {
    const shop = await aShop(t, ROOM)
    const taken: number[] = []
    for (let i = 0; i < 100; i++) taken.push(await takeAll(shop, `203.${i}.113`))
    // An eighth of the common part, and 128 KiB of the other.
    assert.equal(taken[0], 6 * MIB + 128 * KIB)
    assert.equal(taken[99], 128 * KIB)
    const newcomer = { network: '192.0.2' }
    assert.equal((await shop.open({ ...newcomer, bytes: SMALL + 1 })).kind, 'rate limited')
    const whisper = await shop.pay(await shop.quote({ ...newcomer, bytes: SMALL }))
    assert.match(whisper.readToken, /^whisper_read_/)
    const { common, small } = await shop.parts()
    assert.equal(small, 100 * 128 * KIB)
    // None of those who were quoted has lost a byte.
    const sum = taken.reduce((total, bytes) => total + bytes, 0)
    assert.equal(Number(common) + Number(small), sum)
  })

  test('an instance counts what another is about to commit', async (t) => {
    const shop = await aShop(t, { perNetwork: 8_000, inAll: 8_000 })
    const other = await shop.another()
    // An eighth of 6 000 is less than two of them, and of 2 000 less than one.
    const ask = { clientNetwork: NETWORK, ciphertext: randomBytes(600) }
    const [taken, asked] = [newId('order'), newId('order')]
    const late = await other.db.tx(async (tx) => {
      for (const { text, values } of other.service.reserve({ ...ask, orderId: taken })) {
        await tx.run(text, ...values)
      }
      const write = attempt(
        shop.db.write(unit(...shop.service.reserve({ ...ask, orderId: asked }))),
      )
      // It gets as far as it can before the other commits.
      for (let i = 0; i < 40; i++) await shop.db.read('select 1 as n')
      return { write }
    })
    assert.ok('refused' in (await late.write))
    assert.deepEqual(await shop.parts(), { common: 600, small: 0 })
  })

  test('instances that open, settle and end at once never count a byte too many or too few', async (t) => {
    const shop = await aShop(t, { perNetwork: 10_000, inAll: 80_000 })
    const other = await shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        (i % 2 === 0 ? shop : other).open({ bytes: 500, network: `203.0.${i % 4}` }),
      ),
    )
    const quotes = outcomes.flatMap((outcome) => (isSold(outcome) ? [quoteOf(outcome)] : []))
    // An eighth of 60 000 and of 20 000, to the byte.
    assert.deepEqual(await shop.parts(), { common: 7_500, small: 2_500 })
    assert.equal(quotes.length, 20)
    await Promise.all(
      quotes.map(async ({ bolt11, paymentHash }, i) => {
        if (i % 3 === 0) await shop.simulator.pay(bolt11)
        for (const { orders } of [shop, other]) await orders.reconcile(paymentHash, 'lookup')
      }),
    )
    const { common, small } = await shop.parts()
    assert.equal(Number(common) + Number(small), 13 * 500)
    const [counted] = await shop.db.read('select sum(byte_count) as n from whisper_reservation')
    assert.equal(Number(counted?.n), 13 * 500)
  })
})

type Shop = Awaited<ReturnType<typeof aShop>>
type Ask = { bytes: number; network?: string }

function quoteOf(outcome: Outcome) {
  if (outcome.kind !== 'pending') throw new Error(`not pending: ${outcome.kind}`)
  return outcome.quote
}

/** Orders of WHISPERs on a store of their own, with a node that a test may change. */
async function aShop(t: TestContext, unpaidBytes = { perNetwork: 1e6, inAll: 1e7 }) {
  const clock = testClock()
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const db = await openDatabase(databaseUrl)
  const ending = new AbortController()
  t.after(async () => {
    ending.abort()
    await db.close()
  })
  const simulator = await createSimulator({ db, clock })
  // A node that is asked for its invoices, as most are.
  const { signInvoice: _, ...lightning }: Lightning = simulator
  const health = createNodeHealth({ lightning, network: 'regtest', log: silent })
  await health.start(ending.signal)
  const another = (store: Db) => anInstance({ db: store, clock, lightning, health, unpaidBytes })
  const { orders, service, open } = another(db)

  return {
    db,
    clock,
    /** Another instance on the same store. */
    async another() {
      const store = await openDatabase(databaseUrl)
      t.after(() => store.close())
      return { ...another(store), db: store }
    },
    simulator,
    lightning,
    orders,
    service,
    purge: () => service.purge(clock.now()),
    open,
    async quote(ask: Ask) {
      return quoteOf(await open(ask))
    },
    async pay(quote: { bolt11: string; paymentHash: string; orderId: string }) {
      await simulator.pay(quote.bolt11)
      await orders.reconcile(quote.paymentHash, 'stream')
      const outcome = await orders.poll(quote.orderId, { key: null, isPrefetch: false })
      if (outcome.kind !== 'delivered') throw new Error(`not delivered: ${outcome.kind}`)
      return (JSON.parse(outcome.body) as { resource: WhisperCapability }).resource
    },
    /** What networks have. */
    async unpaid(): Promise<Record<string, number>> {
      const rows = await db.read(
        'select client_network, sum(byte_count) as n from whisper_reservation group by client_network',
      )
      return Object.fromEntries(rows.map((row) => [row.client_network, Number(row.n)]))
    },
    /** What the parts have. */
    async parts(): Promise<Record<string, number>> {
      const rows = await db.read('select part, byte_count from whisper_unpaid')
      return Object.fromEntries(rows.map((row) => [row.part, Number(row.byte_count)]))
    },
    async ciphertexts() {
      const [row] = await db.read('select count(*) as n from whisper_ciphertext')
      return row?.n
    },
  }
}

type Parts = Pick<Parameters<typeof createOrders>[0], 'db' | 'clock' | 'lightning' | 'health'>

function anInstance({ unpaidBytes, ...parts }: Parts & { unpaidBytes: UnpaidBytes }) {
  const bindings = createSwitches(parts).bindings
  const service = createWhisper({ ...parts, unpaidBytes, bindings, alerts: { tell: () => [] } })
  const orders: Orders = createOrders({
    ...parts,
    secrets: createSecrets([new Uint8Array(32)]),
    log: silent,
    products: { whisper: WHISPER_PROVISIONING },
    quoteSeconds: 900,
  })

  function open({ bytes, network = NETWORK }: Ask): Promise<Outcome> {
    const ciphertext = randomBytes(bytes)
    return orders.open(
      { route: 'whisper', key: randomUUID(), client: `${network}.7` },
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

  return { orders, service, open }
}
