/** Quoting: opens an order with what it reserves, and makes its one invoice. */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { jcs } from '../lib/jcs.ts'
import type { Log } from '../lib/log.ts'
import type { InvoiceRequest, Lightning, Network } from '../lightning/lightning.ts'
import { decodeInvoice } from '../protocol/bolt11.ts'
import { fingerprints, type Secrets } from '../secrets/secrets.ts'
import type { NodeHealth } from './health.ts'
import { clientMark, type KeyedBy } from './keys.ts'
import {
  dropName,
  dropOpening,
  type Invoiced,
  insertedOrder,
  insertOrder,
  invoiceOrder,
  limitOpen,
  lockKeyOfTurn,
  type NewOrder,
  reclaimOrder,
  takeTurn,
} from './opening.ts'
import { namedIn, type Offer, type OrderRequest, type TooMany, termsUnder } from './order.ts'
import type { Ending } from './settling.ts'
import { insertName, type OrderRow, type OrderStore } from './store.ts'

/** No backend takes this long to make an invoice: an older claim belongs to a dead process. */
const CLAIM_MS = 30_000
/** How long a repeat waits for the invoice that another instance is making, and how often it checks. */
const OPENING_WAIT_MS = 10_000
const OPENING_CHECK_MS = 50

/**
 * An order with its invoice, or why there is no order. `openedBy` is the opening that inserted it, the same
 * object; null if the order existed before.
 */
export type Opened =
  | { kind: 'opened'; order: OrderRow; openedBy: Opening | null }
  | { kind: 'checkout unavailable' }
  | TooMany

/** An order to open. `requestHash` is that of the request under the offered plan. */
export type Opening = {
  orderId: string
  /** Null: a purchase of one URL. The order has no name, and only a credential delivers it. */
  by: KeyedBy | null
  request: OrderRequest
  offer: Offer
  requestHash: Uint8Array
}

/** Opens orders at this node. */
export function createQuoting(deps: {
  db: Db
  store: OrderStore
  lightning: Lightning
  health: NodeHealth
  secrets: Secrets
  clock: Clock
  log: Log
  quoteSeconds: number
  end: Ending
}) {
  const { db, store, lightning, health, secrets, clock, log, quoteSeconds, end } = deps
  const underWay = new Map<string, Promise<Opened>>()
  const [secretId] = fingerprints(secrets)
  /** The text of each plan on sale, which orders store. */
  const planTexts = new WeakMap<Offer['plan'], string>()

  const askFor = (order: NewOrder): InvoiceRequest => ({
    amountMsat: order.amount_sats * 1000,
    memo: order.memo,
    expirySeconds: quoteSeconds,
  })

  function textOf(plan: Offer['plan']): string {
    const text = planTexts.get(plan) ?? jcs(plan)
    planTexts.set(plan, text)
    return text
  }

  function logQuoted(order: OrderRow): void {
    log.info({
      event: 'order.quoted',
      ...namedIn(order),
      planId: order.plan_id,
      amountSats: order.amount_sats,
    })
  }

  /** Without an invoice there is no payment hash, so the line cannot name the order. */
  function logFailed({ product, plan_id: planId }: NewOrder, error: unknown): void {
    log.error({ event: 'lightning.invoice_failed', product, planId, reason: messageOf(error) })
    health.doubt()
  }

  /** Makes the invoice of an order whose claim we hold. */
  async function invoice(order: OrderRow): Promise<OrderRow | null> {
    const { order_id: orderId, claimed_at: claimedAt } = order
    try {
      const ask = askFor(order)
      const made = await lightning.createInvoice(ask)
      const decoded = decodeInvoice(made.bolt11)
      if (decoded.amountMsat !== ask.amountMsat || decoded.paymentHash !== made.paymentHash) {
        throw new Error('the node made a different invoice from the one requested')
      }
      const invoiced = {
        network: networkOf(decoded.network),
        bolt11: made.bolt11,
        payment_hash: made.paymentHash,
        quote_expires_at: decoded.expiresAt,
      }
      const given = await attempt(
        db.write({
          lockKey: orderId,
          statements: { order: invoiceOrder(orderId, claimedAt, invoiced) },
        }),
      )
      // The claim ran out and another process took it over: the order has that process's invoice.
      if ('refused' in given) return awaitInvoice(orderId)
      const quoted: OrderRow = { ...order, ...invoiced, state: 'pending' }
      logQuoted(quoted)
      return quoted
    } catch (error) {
      logFailed(order, error)
      await end(dropOpening(orderId, claimedAt), order, [dropName(orderId)])
      return null
    }
  }

  /** Inserts the order or finds it inserted; resolves once it has its invoice or cannot get one. */
  async function openOnce(opening: Opening): Promise<Opened> {
    const { orderId, by, request, offer, requestHash } = opening
    const now = clock.now()
    const { clientNetwork, maxOpen } = offer
    const isLimited = maxOpen !== undefined
    const order: NewOrder = {
      order_id: orderId,
      secret_id: secretId,
      request_hash: requestHash,
      product: request.product,
      plan_id: request.planId,
      plan: textOf(offer.plan),
      terms: jcs(termsUnder(offer.plan, request)),
      memo: offer.memo,
      amount_sats: offer.plan.priceSats,
      client_network: clientNetwork,
      opened_by: clientMark(secrets, by?.client ?? null),
      contested: by === null ? 1 : 0,
      created_at: now,
      extends_id: request.extendsId ?? null,
    }
    const reserve = offer.reserve?.(orderId) ?? []
    const signed = signHere(order)
    if (signed === 'failed') return { kind: 'checkout unavailable' }
    const done = await attempt(
      db.write({
        lockKey: isLimited ? lockKeyOfTurn(clientNetwork) : orderId,
        // A claim without an invoice only has to be visible to others: the unit of the invoice flushes it.
        durability: signed ? 'flushed' : 'deferred',
        statements: {
          turn: isLimited ? [takeTurn(clientNetwork)] : [],
          name: by === null ? [] : [insertName(orderId)],
          order: insertOrder(order, signed?.invoice),
          limit: isLimited ? [limitOpen(clientNetwork, now, maxOpen)] : [],
          reserve,
          invoice: signed?.statements ?? [],
        },
      }),
    )
    if ('refused' in done) {
      // The key names an order already.
      if (done.refused === 'name' || done.refused === 'order') {
        return opened(await awaitInvoice(orderId), null)
      }
      const isOfNetwork = done.refused === 'limit'
      const retryAfterSeconds = isOfNetwork ? await secondsToNext(offer) : null
      return { kind: 'rate limited', retryAfterSeconds }
    }
    if (!signed) return opened(await invoice(insertedOrder(order)), opening)
    const quoted = insertedOrder(order, signed.invoice)
    logQuoted(quoted)
    return opened(quoted, opening)
  }

  /**
   * The invoice of a new order, signed here. It comes into being only with the unit that stores it, so it
   * does no harm if the order turns out to exist. Null if a separate node makes the invoices: it gets the
   * request only after the order is claimed.
   */
  function signHere(
    order: NewOrder,
  ): { invoice: Invoiced; statements: Statement[] } | 'failed' | null {
    if (!lightning.signInvoice) return null
    try {
      const { bolt11, paymentHash, network, expiresAt, statements } = lightning.signInvoice(
        askFor(order),
      )
      const invoice = { network, bolt11, payment_hash: paymentHash, quote_expires_at: expiresAt }
      return { invoice, statements }
    } catch (error) {
      logFailed(order, error)
      return 'failed'
    }
  }

  /** The time until the first quote among a network's unpaid orders ends. */
  async function secondsToNext({ clientNetwork }: Offer): Promise<number> {
    const now = clock.now()
    const first = await store.firstEndOf(clientNetwork, now)
    return Math.ceil(((first ?? now) - now) / 1000)
  }

  /** Waits for the invoice that another instance is making; takes over if that instance has died. */
  async function awaitInvoice(name: string): Promise<OrderRow | null> {
    for (let waited = 0; waited < OPENING_WAIT_MS; waited += OPENING_CHECK_MS) {
      const { byKey: order } = await store.candidates([name], null)
      if (order?.state !== 'opening') return order
      const { order_id: orderId } = order
      const now = clock.now()
      if (order.claimed_at < now - CLAIM_MS) {
        const claimed = await store.one(orderId, reclaimOrder(orderId, order.claimed_at, now))
        if (claimed) return invoice(claimed)
      }
      await new Promise((resolve) => setTimeout(resolve, OPENING_CHECK_MS))
    }
    return null
  }

  return {
    /** Opens the order, or finds it open. Of several calls at once, one does it for all. */
    open(opening: Opening): Promise<Opened> {
      const { orderId } = opening
      let work = underWay.get(orderId)
      if (!work) {
        work = openOnce(opening).finally(() => underWay.delete(orderId))
        underWay.set(orderId, work)
      }
      return work
    },

    /** Deletes orders that a process left before they had an invoice, and frees what they reserved. */
    async dropAbandoned(before: number): Promise<void> {
      for (;;) {
        const orders = await store.abandoned(before, 500)
        for (const order of orders) {
          const { order_id: orderId, claimed_at: claimedAt } = order
          await end(dropOpening(orderId, claimedAt), order, [dropName(orderId)])
        }
        if (orders.length < 500) return
      }
    },
  }
}

function opened(order: OrderRow | null, openedBy: Opening | null): Opened {
  return order ? { kind: 'opened', order, openedBy } : { kind: 'checkout unavailable' }
}

function networkOf(network: string): Network {
  if (network === 'mainnet' || network === 'regtest' || network === 'signet') return network
  throw new Error('the node made an invoice for a network that the interface does not know')
}
