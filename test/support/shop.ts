/** Orders on a new store, with a node, a product and a clock that the test controls. */
import type { Db, Statement } from '../../src/db/db.ts'
import { type Clock, rfc3339 } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import type { Log } from '../../src/lib/log.ts'
import type { Lightning } from '../../src/lightning/lightning.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import { createNodeHealth } from '../../src/payment/health.ts'
import type { KeyedBy } from '../../src/payment/keys.ts'
import type { Deliverable, Offer, OrderRequest, Outcome } from '../../src/payment/order.ts'
import { createOrders, type Orders } from '../../src/payment/orders.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { sealDelivery } from '../../src/payment/store.ts'
import { createSecrets, type Secrets } from '../../src/secrets/secrets.ts'
import { tokenFromSeed } from '../../src/secrets/tokens.ts'
import type { After } from './folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from './store.ts'
import { unit } from './unit.ts'

export const SECOND = 1_000
export const HOUR = 3_600 * SECOND
export const DAY = 24 * HOUR
export const QUOTE_SECONDS = 900
/** The lifetime of the capability that `anOffer` sells. */
export const LIFE = 7 * DAY

/** A clock that stands still until a test moves it. */
export function manualClock(start = Date.UTC(2026, 0, 2, 3, 4, 5, 678)) {
  let now = start
  let monotonic = 0
  let held = false
  return {
    isHeld: () => held,
    hasGoneBack: () => false,
    /** Whether nothing final may happen now. */
    hold(isHeld: boolean): void {
      held = isHeld
    },
    now: () => now,
    monotonic: () => monotonic,
    /** Lets this much time pass. */
    advance(ms: number): void {
      now += ms
      monotonic += ms
    },
    /** Sets the wall clock forward or back, while no time passes. */
    jump(ms: number): void {
      now += ms
    },
  }
}

/** Beside its options, what the product can do with a capability or a reservation. */
export type ShopOptions = Partial<Pick<Provisioning, 'extend' | 'restore' | 'release'>> & {
  /** Default: a new store on the engine of the tests. */
  databaseUrl?: string
  /** The secrets in hex, the current one first. */
  secrets?: [string, ...string[]]
  isSoldOut?: boolean
  /** What the product provisions at each settlement, besides its row. */
  provisions?: Provisioning['provision']
  /** Who is told of extended capabilities. */
  onExtended?: (publicId: string) => void
  /** Whether the node signs inside this process, like the simulator. */
  signsHere?: boolean
}

type RepeatAsk = {
  key?: string
  request?: OrderRequest
  /** The state of the request's payment attempt. */
  credential?: 'none' | 'verified' | 'invalid'
  at?: Orders
  /** The client's address. Default: that of the client that opens the orders. */
  client?: string | null
  /** Whether the request has the right `Payment-Preimage`. */
  isProven?: boolean
}

export type Shop = Awaited<ReturnType<typeof aShop>>

/**
 * Opens all of the store's connections for reads. One that is opened while a test ends pauses takes the end of a pause
 * for that of its time.
 */
export async function openReads({ db }: Pick<Shop, 'db'>): Promise<void> {
  await Promise.all(Array.from({ length: 20 }, () => db.read('select 1 as one')))
}

export const SECRET = '11'.repeat(32)
export const KEY = '5f8a2c1e-0d3b-4a6f-9e7c-1b2d3e4f5a6b'

/** The address of the client that opens the orders. */
export const CLIENT = '203.0.113.7'

export const aName = (key = KEY, name: Partial<KeyedBy> = {}): KeyedBy => ({
  route: 'catch',
  key,
  client: CLIENT,
  ...name,
})

export const aRequest = (request: Partial<OrderRequest> = {}): OrderRequest => ({
  product: 'catch',
  planId: 'spark',
  terms: null,
  bodySha256: '00'.repeat(32),
  ...request,
})

export const anOffer = (offer: Partial<Offer> = {}): Offer => ({
  plan: { planId: 'spark', priceSats: 100, durationSeconds: LIFE / SECOND },
  clientNetwork: '203.0.113',
  ...offer,
})

export async function aShop(t: After, options: ShopOptions = {}) {
  const databaseUrl = options.databaseUrl ?? (await aMigratedDatabaseUrl(t))
  const clock = manualClock()
  const db = await openDatabase(databaseUrl)
  const ending = new AbortController()
  const closing: (() => Promise<void>)[] = []
  t.after(async () => {
    ending.abort()
    for (const work of closing) await work()
    await db.close()
  })
  const logged: ({ event: string } & Record<string, unknown>)[] = []
  /** The level at which each event was logged last. */
  const levels = new Map<string, keyof Log>()
  const at =
    (level: keyof Log): Log['info'] =>
    (facts) => {
      logged.push(facts)
      levels.set(facts.event, level)
    }
  const log: Log = { info: at('info'), warn: at('warn'), error: at('error') }
  const node = await aNode(db, clock, options)
  const health = createNodeHealth({ lightning: node, network: 'regtest', log })
  await health.start(ending.signal)

  /** Another instance on the same store. `at`: connections of its own. */
  const another = (
    { secrets = [SECRET], isSoldOut = false, onExtended, ...others }: ShopOptions = {},
    at = db,
  ): Orders =>
    createOrders({
      ...(onExtended === undefined ? {} : { onExtended }),
      db: at,
      lightning: node,
      health,
      clock,
      log,
      secrets: secretsOf(...secrets),
      products: { catch: aProduct(isSoldOut, others) },
      quoteSeconds: QUOTE_SECONDS,
    })
  const orders = another(options)

  const shop = {
    databaseUrl,
    db,
    clock,
    node,
    health,
    orders,
    logged,
    levels,
    log,
    /** Runs before the store is closed, as a service stops its work before. */
    beforeClose: (work: () => Promise<void>) => void closing.push(work),
    /** Opens an order, and asserts that it is pending. */
    quote: async (key?: string): Promise<Quote> =>
      pendingQuote(await orders.open(aName(key), aRequest(), anOffer())),
    /** Opens an order and pays it. The service has not learned of the payment yet. */
    async paid(key?: string): Promise<Quote> {
      const quote = await shop.quote(key)
      await shop.pay(quote)
      return quote
    },
    /** The same, and the node's stream has told the service of the payment. */
    async paidAndSeen(key?: string): Promise<Quote> {
      const quote = await shop.paid(key)
      await orders.reconcile(quote.paymentHash, 'stream')
      return quote
    },
    async pay({ bolt11 }: Quote): Promise<void> {
      const { kind } = await node.simulator.pay(bolt11)
      if (kind !== 'paid') throw new Error(`the simulator did not pay: ${kind}`)
    },
    /** Repeats the purchase request at this instance or another. Null if there is no order. */
    async repeat(ask: RepeatAsk = {}): Promise<Outcome | null> {
      const { key = KEY, request = aRequest(), credential = 'none', at = orders } = ask
      const { client = CLIENT, isProven = false } = ask
      const by = aName(key, { client })
      const { byKey } = (await at.lookAhead({ by, credential: { kind: 'none' } })).read
      if (byKey?.payment_hash == null) return null
      const preimage = isProven ? await preimageOf(db, byKey.payment_hash) : null
      const decision = await at.decide({
        by,
        request,
        preimage,
        credential: credentialOf(credential, byKey.payment_hash),
      })
      return decision.kind === 'known' ? delivering(decision.act(new Uint8Array())) : null
    },
    order: async ({ orderId }: { orderId: string }) =>
      (await db.read('select * from purchase_order where order_id = $1', orderId))[0],
    /** The public ids that the product provisioned. */
    provisioned: async () =>
      (await db.read(`select name from meta where name like 'catch\\_%' escape '\\'`)).map(
        (row) => row.name,
      ),
    /** Uses a delivered token for the first time. */
    async use(publicId: string): Promise<void> {
      await db.write(unit(sealDelivery(publicId, clock.now())))
    },
    another,
  }
  return shop
}

/** The preimage of an invoice of the simulator, paid or not. */
export async function preimageOf(db: Pick<Db, 'read'>, paymentHash: string): Promise<string> {
  const [row] = await db.read<{ preimage: string }>(
    'select preimage from simulator_invoice where payment_hash = $1',
    paymentHash,
  )
  return row?.preimage ?? ''
}

/** What a purchase request does at an order that is there. */
export async function known(
  orders: Orders,
  credential: CheckedCredential<unknown> = { kind: 'none' },
  ask: { by?: KeyedBy | null; request?: OrderRequest; preimage?: string | null } = {},
) {
  const decision = await orders.decide({ by: aName(), request: aRequest(), credential, ...ask })
  if (decision.kind !== 'known') throw new Error(`no order is known: ${decision.kind}`)
  const { act, ...facts } = decision
  return { facts, act: (body: Uint8Array | null = null) => delivering(act(body)) }
}

/** What a request that may deliver came to. */
export async function delivering(done: Promise<Outcome | Deliverable>): Promise<Outcome> {
  const outcome = await done
  if (outcome.kind === 'deliverable') throw new Error('only a HEAD may have this outcome')
  return outcome
}

function credentialOf(
  credential: NonNullable<RepeatAsk['credential']>,
  paymentHash: string,
): CheckedCredential<string> {
  if (credential === 'none') return { kind: 'none' }
  if (credential === 'invalid') return { kind: 'invalid', reason: 'wrong', paymentHash: null }
  return { kind: 'verified', paymentHash, challengeId: '' }
}

export function pendingQuote(outcome: Outcome): Quote {
  if (outcome.kind !== 'pending') throw new Error(`the order is not pending: ${outcome.kind}`)
  return outcome.quote
}

/** The simulator. It counts look-ups, and a test can replace its answers. */
async function aNode(db: Db, clock: Clock, { signsHere }: ShopOptions) {
  const simulator = await createSimulator({ db, clock })
  const node = {
    simulator,
    replaced: {} as Partial<Lightning>,
    lookups: [] as string[],
    invoices: [] as string[],
  }
  const lightning: Lightning = {
    info: () => (node.replaced.info ?? simulator.info)(),
    async createInvoice(ask) {
      const made = await (node.replaced.createInvoice ?? simulator.createInvoice)(ask)
      node.invoices.push(made.paymentHash)
      return made
    },
    lookupInvoice(paymentHash) {
      node.lookups.push(paymentHash)
      return (node.replaced.lookupInvoice ?? simulator.lookupInvoice)(paymentHash)
    },
    watch: (onSettled, signal) => (node.replaced.watch ?? simulator.watch)(onSettled, signal),
    ...(signsHere
      ? { signInvoice: (ask) => (node.replaced.signInvoice ?? simulator.signInvoice)(ask) }
      : {}),
  }
  return Object.assign(node, lightning)
}

/** A product that provisions a row with the order's id. If it is sold out, its condition never holds. */
function aProduct(
  isSoldOut: boolean,
  { provisions, extend, restore, release }: ShopOptions,
): Provisioning {
  return {
    newPublicId: () => newId('catch'),
    provision: (grant): Statement[] => [
      {
        text: 'insert into meta (name, value) values ($1, $2)',
        values: [grant.publicId, grant.orderId],
      },
      ...(provisions?.(grant) ?? []),
      ...(isSoldOut
        ? [{ text: `delete from meta where name = 'the last one'`, values: [], expect: 1 }]
        : []),
    ],
    capability: ({ publicId, seed, expiresAt }) => ({
      product: 'catch',
      publicId,
      ownerToken: tokenFromSeed('catch_owner', seed),
      expiresAt: rfc3339(expiresAt),
    }),
    ...(extend === undefined ? {} : { extend }),
    ...(restore === undefined ? {} : { restore }),
    ...(release === undefined ? {} : { release }),
  }
}

const fromHex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'))

/** The secrets of a service, in hex, the current one first. */
export const secretsOf = (current: string, ...older: string[]): Secrets =>
  createSecrets([fromHex(current), ...older.map(fromHex)])
