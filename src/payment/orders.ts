/**
 * The life of an order: quote → settle → deliver → seal. One order has one invoice, whatever the
 * flow that shows it, and each step is one conditional update: whoever changes the row did it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import {
  type InvoiceState,
  type Lightning,
  type Network,
  UnknownInvoice,
} from '../lightning/lightning.ts'
import { decodeInvoice } from '../protocol/bolt11.ts'
import type { NodeHealth } from './health.ts'
import { isKeyOf, keyHash, orderIds } from './idempotency.ts'
import type { PaymentLog } from './log.ts'
import type { Grant, PlanId, PlanTerms, Product, Provisioning } from './provisioning.ts'
import { fingerprints, type Secrets, seal, unseal } from './secrets.ts'
import {
  claimLookup,
  createOrderStore,
  deliverOrder,
  dropOpening,
  failSettlement,
  insertOrder,
  invoiceOrder,
  killOrder,
  type OrderRow,
  reclaimOrder,
  resealOrder,
  type SettledBy,
  settleOrder,
} from './store.ts'

/** The answer can be repeated to its buyer for this long after the first delivery. */
export const REPLAY_MS = 24 * 60 * 60 * 1000
/** Whoever asks, the node is asked about one order at most this often. */
const LOOKUP_EVERY_MS = 1_000
/** A poll waits this long for the node, then answers from the store. */
const LOOKUP_WAIT_MS = 2_000
/** Longer than any backend takes to make an invoice: a claim this old belongs to a dead process. */
const CLAIM_MS = 30_000
/** How long a repeat waits for the invoice that another instance is making, and how often it looks. */
const OPENING_WAIT_MS = 10_000
const OPENING_LOOK_MS = 50

/** What names an order: the same route, key and (for a guessable key) client. */
export type OrderName = { route: string; key: string; clientAddress: string }

/**
 * What must be equal for a repeat to be the same request. Terms that the plan fills in are a
 * function of it, so that a repeat is compared under the plan that its order keeps.
 */
export type OrderRequest = {
  product: Product
  planId: PlanId
  terms: Json | ((plan: Json) => Json)
  bodySha256: string
}

/** What a new order is made of. `plan` is kept as it is now. */
export type Offer = {
  plan: PlanTerms & Record<string, Json>
  memo: string
  clientNetwork: string
  /**
   * The statements that reserve what settling will need; they join the unit that inserts the
   * order. One that is refused means that there is no room: no order, no invoice.
   */
  reserve?: (orderId: string) => Statement[]
}

/** An order with its invoice. `quoteExpiresAt` is a whole second, in unix milliseconds. */
export type Quote = {
  orderId: string
  product: Product
  planId: PlanId
  amountSats: number
  bolt11: string
  paymentHash: string
  expiresAt: number
  network: Network
  /** The invoice's text: product and plan. */
  memo: string
  /** How long the capability will live. */
  durationSeconds: number
}

export type Outcome =
  | { kind: 'pending'; quote: Quote }
  /** The credential is not this order's, or none at all: nothing was changed. */
  | { kind: 'credential refused'; quote: Quote }
  /** `body` is the JSON of SettledPayment, the same bytes each time. */
  | { kind: 'delivered'; body: string; paymentHash: string; settledAt: number }
  | { kind: 'already delivered' }
  | { kind: 'order expired' }
  | { kind: 'order not found' }
  | { kind: 'idempotency key reused with a different request' }
  /** There is no room for what the offer reserves. Nothing was opened. */
  | { kind: 'rate limited' }
  /** The node cannot make an invoice now, or the store cannot honour a payment yet. */
  | { kind: 'checkout unavailable' }

/**
 * What came with a repeat: nothing, a preimage that was checked against this order's payment hash,
 * or a credential that is not this order's.
 */
export type Credential = 'none' | 'paid' | 'refused'

/** An order that exists: the same request gets it as it stands for its buyer. */
export type KnownOrder = {
  orderId: string
  planId: PlanId
  paymentHash: string
  repeat(request: OrderRequest, credential: Credential): Promise<Outcome>
}

export type Orders = {
  /** The order of this name, or null where there is none yet. */
  find(name: OrderName): Promise<KnownOrder | null>
  /** The order of an invoice that was opened with this key, from whatever address. */
  findPaid(paymentHash: string, key: string): Promise<KnownOrder | null>
  /** Whether a new order can be opened now: the node takes money. */
  isSelling(): boolean
  /** The unpaid orders of a client network, and when the first of them runs out. */
  openOf(clientNetwork: string): Promise<{ count: number; secondsToNext: number }>
  /** Opens an order and makes its invoice; of several at once, one does and all get the same. */
  open(name: OrderName, request: OrderRequest, offer: Offer): Promise<Outcome>
  /**
   * The order as the poll sees it. A key, when given, must be the order's own. `admit` is asked once
   * the order is known to be there, before anything comes of it; what it throws refuses the poll.
   */
  poll(
    orderId: string,
    ask: { key: string | null; isPrefetch: boolean; admit?: () => Promise<void> },
  ): Promise<Outcome>
  /** Asks the node about an order by its payment hash and acts on the answer. */
  reconcile(paymentHash: string, by: SettledBy): Promise<void>
  /** The same for an order at hand. False when the node could not be asked. */
  lookUp(order: OrderRow, by: SettledBy): Promise<boolean>
  /** Forgets orders that a process left before they had an invoice, with what they reserved. */
  dropAbandoned(before: number): Promise<void>
  /**
   * Re-encrypts what is sealed under an older secret.
   * @returns how many live orders were made under none of the configured secrets.
   */
  reseal(): Promise<number>
}

/** What is needed of an order to end it. */
type Ended = Pick<OrderRow, 'order_id' | 'product'>

export function createOrders(deps: {
  db: Db
  lightning: Lightning
  health: NodeHealth
  secrets: Secrets
  clock: Clock
  log: PaymentLog
  products: Partial<Record<Product, Provisioning>>
  quoteSeconds: number
}): Orders {
  const { db, lightning, health, secrets, clock, log, products, quoteSeconds } = deps
  const store = createOrderStore(db)
  const opening = new Map<string, Promise<OrderRow | 'rate limited' | null>>()

  const isSame = (order: OrderRow, request: OrderRequest): boolean =>
    Buffer.from(order.request_hash).equals(requestHash(request, planOf(order)))

  /** Ends an order that nobody paid, and lets go of what it reserved; false when it had changed. */
  async function end(statement: Statement, order: Ended): Promise<boolean> {
    const release = products[order.product]?.release?.(order.order_id) ?? []
    return 'rows' in (await attempt(db.write([statement, ...release])))
  }

  function product(order: OrderRow): Provisioning {
    const provisioning = products[order.product]
    if (!provisioning) throw new Error(`no product provisions ${order.product}`)
    return provisioning
  }

  /** The order as its buyer may see it; `isBuyer` is proof by key, so that an answer may repeat. */
  async function answer(order: OrderRow, isBuyer: boolean): Promise<Outcome> {
    switch (order.state) {
      case 'opening':
        return { kind: 'checkout unavailable' }
      case 'pending':
        return { kind: 'pending', quote: quoteOf(order) }
      case 'dead':
        return { kind: 'order expired' }
      case 'paid_unfulfilled':
        return { kind: 'checkout unavailable' }
      case 'settled':
        return order.delivered_at === null ? deliver(order, isBuyer) : replay(order, isBuyer)
    }
  }

  async function deliver(order: OrderRow, isBuyer: boolean): Promise<Outcome> {
    const now = clock.now()
    if (isOver(order, now)) return { kind: 'order expired' }
    const delivered = await store.one(deliverOrder(order.order_id, now))
    if (delivered) {
      logDelivered(delivered)
      return deliveredAs(delivered)
    }
    const current = await store.find([order.order_id])
    return current ? replay(current, isBuyer) : { kind: 'order not found' }
  }

  function replay(order: OrderRow, isBuyer: boolean): Outcome {
    return isBuyer && !isOver(order, clock.now())
      ? deliveredAs(order)
      : { kind: 'already delivered' }
  }

  function logDelivered(order: OrderRow): void {
    log.info({ event: 'order.delivered', orderId: order.order_id, product: order.product })
  }

  function deliveredAs(order: OrderRow): Outcome {
    const { payment_hash, settled_at } = order
    if (payment_hash === null || settled_at === null) throw new Error('the order is not settled')
    return {
      kind: 'delivered',
      body: settledPayment(order),
      paymentHash: payment_hash,
      settledAt: settled_at,
    }
  }

  function settledPayment(order: OrderRow): string {
    const seed = order.seed && openSeed(order.seed, order.order_id)
    if (!seed) throw new Error('the delivery seed of a settled order does not open')
    const resource = product(order).capability(grantOf(order, seed.plain))
    return JSON.stringify({ settled: true, resource })
  }

  function openSeed(
    sealed: Uint8Array,
    orderId: string,
  ): { plain: Buffer; isCurrent: boolean } | null {
    for (const [i, key] of secrets.keys('delivery seed').entries()) {
      const plain = unseal(key, sealed, orderId)
      if (plain) return { plain, isCurrent: i === 0 }
    }
    return null
  }

  /**
   * Settles and provisions in one unit; with `delivery`, hands over in the same one. Resolves to
   * the delivered order, or null where it was not this call that delivered it.
   */
  async function settle(
    order: OrderRow,
    by: SettledBy,
    delivery: 'later' | 'now' = 'later',
  ): Promise<OrderRow | null> {
    const now = clock.now()
    const seed = randomBytes(32)
    const settled: OrderRow = {
      ...order,
      settled_at: now,
      public_id: product(order).newPublicId(),
      expires_at: now + planOf(order).durationSeconds * 1000,
    }
    const done = await attempt(
      db.write([
        settleOrder(order.order_id, {
          at: now,
          by,
          publicId: settled.public_id ?? '',
          seed: seal(secrets.keys('delivery seed')[0], seed, order.order_id),
          expiresAt: settled.expires_at ?? 0,
        }),
        ...product(order).provision(grantOf(settled, seed)),
        ...(delivery === 'now' ? [deliverOrder(order.order_id, now)] : []),
      ]),
    )
    const facts = { orderId: order.order_id, product: order.product, amountSats: order.amount_sats }
    if ('rows' in done) {
      log.info({ event: 'order.settled', ...facts, by })
      return (delivery === 'now' && (done.rows.at(-1)?.[0] as OrderRow | undefined)) || null
    }
    // Statement 0 is the order itself: somebody else settled it, and that is as good.
    if (done.refused === 0) return null
    const failed = await store.one(failSettlement(order.order_id, now, by))
    if (failed) log.error({ event: 'order.paid_unfulfilled', ...facts, by })
    return null
  }

  /** A preimage is proof by itself, while the quote stands; after that only the node can tell. */
  async function redeem(order: OrderRow): Promise<Outcome> {
    const isStanding = order.quote_expires_at !== null && clock.now() < order.quote_expires_at
    if (isStanding) {
      const delivered = await settle(order, 'preimage', 'now')
      if (delivered) {
        logDelivered(delivered)
        return deliveredAs(delivered)
      }
    } else {
      await withinMs(lookUp(order, 'lookup'), LOOKUP_WAIT_MS)
    }
    const current = await store.find([order.order_id])
    if (!current) return { kind: 'order not found' }
    // Never a challenge here: its holder would pay a second time.
    return current.state === 'pending' ? { kind: 'checkout unavailable' } : answer(current, true)
  }

  function known(order: OrderRow): KnownOrder {
    return {
      orderId: order.order_id,
      planId: order.plan_id,
      paymentHash: order.payment_hash ?? '',
      async repeat(request, credential) {
        if (!isSame(order, request)) {
          return { kind: 'idempotency key reused with a different request' }
        }
        const isDelivered = order.state === 'settled' && order.delivered_at !== null
        if (isDelivered && isOver(order, clock.now())) return { kind: 'already delivered' }
        if (credential === 'refused') return { kind: 'credential refused', quote: quoteOf(order) }
        if (credential === 'paid' && order.state === 'pending') return redeem(order)
        return answer(await refresh(order), true)
      },
    }
  }

  async function lookUp(order: OrderRow, by: SettledBy): Promise<boolean> {
    if (!order.payment_hash) return true
    const state = await stateAtNode(order.order_id, order.payment_hash)
    if (state === 'settled') await settle(order, by)
    if (state === 'dead' && (await end(killOrder(order.order_id), order))) {
      log.info({ event: 'order.dead', orderId: order.order_id, product: order.product })
    }
    return state !== 'unreachable'
  }

  async function stateAtNode(
    orderId: string,
    paymentHash: string,
  ): Promise<InvoiceState | 'unknown' | 'unreachable'> {
    try {
      return (await lightning.lookupInvoice(paymentHash)).state
    } catch (error) {
      const facts = { orderId, reason: reasonOf(error) }
      if (error instanceof UnknownInvoice) {
        // A restored or a wrong node. The order stays open: the buyer may have paid.
        log.error({ event: 'order.invoice_unknown', ...facts })
        return 'unknown'
      }
      log.warn({ event: 'lightning.lookup_failed', ...facts })
      return 'unreachable'
    }
  }

  /** The newest state of an order that may have been paid since; asks the node when it is time. */
  async function refresh(order: OrderRow): Promise<OrderRow> {
    if (order.state !== 'pending') return order
    const claimed = await store.one(claimLookup(order.order_id, clock.now(), LOOKUP_EVERY_MS))
    if (claimed) await withinMs(lookUp(claimed, 'lookup'), LOOKUP_WAIT_MS)
    return (await store.find([order.order_id])) ?? order
  }

  /** Makes the invoice of an order that we hold the claim on. */
  async function invoice(order: OrderRow): Promise<OrderRow | null> {
    const { order_id: orderId, claimed_at: claimedAt, memo } = order
    try {
      const amountMsat = order.amount_sats * 1000
      const made = await lightning.createInvoice({ amountMsat, memo, expirySeconds: quoteSeconds })
      const decoded = decodeInvoice(made.bolt11)
      if (decoded.amountMsat !== amountMsat || decoded.paymentHash !== made.paymentHash) {
        throw new Error('the node made another invoice than it was asked for')
      }
      const given = await attempt(
        db.write([
          invoiceOrder(orderId, claimedAt, {
            network: networkOf(decoded.network),
            bolt11: made.bolt11,
            paymentHash: made.paymentHash,
            expiresAt: decoded.expiresAt,
          }),
        ]),
      )
      // Our claim ran out and was taken over: the order's invoice is another one.
      if ('refused' in given) return awaitInvoice(orderId)
      log.info({
        event: 'order.quoted',
        orderId,
        product: order.product,
        planId: order.plan_id,
        amountSats: order.amount_sats,
      })
      return (given.rows[0]?.[0] as OrderRow | undefined) ?? null
    } catch (error) {
      log.error({ event: 'lightning.invoice_failed', orderId, reason: reasonOf(error) })
      health.doubt()
      await end(dropOpening(orderId, claimedAt), order)
      return null
    }
  }

  /** Inserts the order or finds it inserted, and comes back when it has its invoice, or cannot. */
  async function openOnce(
    orderId: string,
    name: OrderName,
    request: OrderRequest,
    offer: Offer,
  ): Promise<OrderRow | 'rate limited' | null> {
    const now = clock.now()
    const done = await attempt(
      db.write([
        insertOrder({
          order_id: orderId,
          secret_id: fingerprints(secrets)[0],
          key_hash: keyHash(secrets, name.key),
          request_hash: requestHash(request, offer.plan),
          product: request.product,
          plan_id: request.planId,
          plan: jcs(offer.plan),
          terms: jcs(termsUnder(offer.plan, request)),
          memo: offer.memo,
          amount_sats: offer.plan.priceSats,
          client_network: offer.clientNetwork,
          created_at: now,
        }),
        ...(offer.reserve?.(orderId) ?? []),
      ]),
    )
    // Statement 0 is the order itself: it exists already.
    if ('refused' in done) {
      return done.refused === 0 ? awaitInvoice(orderId) : 'rate limited'
    }
    const inserted = done.rows[0]?.[0] as OrderRow | undefined
    return inserted ? invoice(inserted) : null
  }

  /** Another instance is making the invoice: waits for it, and takes over from a dead one. */
  async function awaitInvoice(orderId: string): Promise<OrderRow | null> {
    for (let waited = 0; waited < OPENING_WAIT_MS; waited += OPENING_LOOK_MS) {
      const order = await store.find([orderId])
      if (order?.state !== 'opening') return order
      const now = clock.now()
      if (order.claimed_at < now - CLAIM_MS) {
        const ours = await store.one(reclaimOrder(orderId, order.claimed_at, now))
        if (ours) return invoice(ours)
      }
      await new Promise((resolve) => setTimeout(resolve, OPENING_LOOK_MS))
    }
    return null
  }

  return {
    async find(name) {
      const order = await store.find(orderIds(secrets, name))
      return order && order.state !== 'opening' ? known(order) : null
    },

    async findPaid(paymentHash, key) {
      const order = await store.findByPaymentHash(paymentHash)
      return order && isKeyOf(secrets, key, order.key_hash) ? known(order) : null
    },

    isSelling: health.isHealthy,

    async openOf(clientNetwork) {
      const now = clock.now()
      const { count, firstExpiresAt } = await store.openOf(clientNetwork, now)
      return { count, secondsToNext: Math.ceil(((firstExpiresAt ?? now) - now) / 1000) }
    },

    async open(name, request, offer) {
      if (!health.isHealthy()) return { kind: 'checkout unavailable' }
      const [orderId] = orderIds(secrets, name)
      let work = opening.get(orderId)
      if (!work) {
        work = openOnce(orderId, name, request, offer).finally(() => opening.delete(orderId))
        opening.set(orderId, work)
      }
      const order = await work
      if (!order) return { kind: 'checkout unavailable' }
      if (order === 'rate limited') return { kind: 'rate limited' }
      if (!isSame(order, request))
        return { kind: 'idempotency key reused with a different request' }
      return answer(order, true)
    },

    async poll(orderId, { key, isPrefetch, admit }) {
      const found = await store.find([orderId])
      if (!found || found.state === 'opening') return { kind: 'order not found' }
      await admit?.()
      if (key !== null && !isKeyOf(secrets, key, found.key_hash)) return { kind: 'order not found' }
      const order = await refresh(found)
      if (isPrefetch && order.state === 'settled') return { kind: 'pending', quote: quoteOf(order) }
      return answer(order, key !== null)
    },

    async reconcile(paymentHash, by) {
      const order = await store.findByPaymentHash(paymentHash)
      if (order?.state === 'pending' || order?.state === 'dead') await lookUp(order, by)
    },

    lookUp,

    async dropAbandoned(before) {
      for (;;) {
        const orders = await store.abandoned(before, 500)
        for (const order of orders) await end(dropOpening(order.order_id, order.claimed_at), order)
        if (orders.length < 500) return
      }
    },

    async reseal() {
      let after = ''
      for (;;) {
        const orders = await store.withSeed(after, 500)
        for (const order of orders) {
          after = order.order_id
          const opened = order.seed && openSeed(order.seed, order.order_id)
          if (!order.seed || !opened || opened.isCurrent) continue
          const key = secrets.keys('delivery seed')[0]
          const sealed = seal(key, opened.plain, order.order_id)
          await db.write([resealOrder(order.order_id, order.seed, sealed)])
        }
        if (orders.length < 500) return store.foreign(fingerprints(secrets), clock.now())
      }
    },
  }
}

function requestHash(request: OrderRequest, plan: Json): Buffer {
  const { product, planId, bodySha256 } = request
  const terms = termsUnder(plan, request)
  return createHash('sha256').update(jcs({ product, planId, terms, bodySha256 })).digest()
}

function termsUnder(plan: Json, { terms }: OrderRequest): Json {
  return typeof terms === 'function' ? terms(plan) : terms
}

/** Whether nothing is dispensed any more: sealed, past its replay time, or past its life. */
function isOver(order: OrderRow, now: number): boolean {
  if (order.sealed_at !== null || order.seed === null) return true
  if (order.expires_at !== null && order.expires_at <= now) return true
  return order.delivered_at !== null && order.delivered_at + REPLAY_MS <= now
}

function quoteOf(order: OrderRow): Quote {
  const { bolt11, payment_hash, quote_expires_at, network } = order
  if (!bolt11 || !payment_hash || !quote_expires_at || !network) {
    throw new Error('an order without an invoice has no quote')
  }
  return {
    orderId: order.order_id,
    product: order.product,
    planId: order.plan_id,
    amountSats: order.amount_sats,
    bolt11,
    paymentHash: payment_hash,
    expiresAt: quote_expires_at,
    network,
    memo: order.memo,
    durationSeconds: planOf(order).durationSeconds,
  }
}

function grantOf(order: OrderRow, seed: Uint8Array): Grant {
  const { public_id, settled_at, expires_at } = order
  if (public_id === null || settled_at === null || expires_at === null) {
    throw new Error('an order that is not settled grants nothing')
  }
  return {
    orderId: order.order_id,
    publicId: public_id,
    planId: order.plan_id,
    plan: planOf(order),
    terms: JSON.parse(order.terms) as Json,
    seed,
    settledAt: settled_at,
    expiresAt: expires_at,
  }
}

function planOf(order: OrderRow): PlanTerms & Record<string, Json> {
  return JSON.parse(order.plan) as PlanTerms & Record<string, Json>
}

function networkOf(network: string): Network {
  if (network === 'mainnet' || network === 'regtest' || network === 'signet') return network
  throw new Error('the node made an invoice for a network that the interface does not know')
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
