/**
 * Quoting: makes an invoice, and opens its order with what it reserves in one unit. An invoice that no order stores was
 * shown to nobody. So of several calls at once with one key, the one whose unit is first opens the order, and all others
 * find it.
 */
import { hash } from 'node:crypto'
import { attempt, type Db, insertRow, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { jcs } from '../lib/jcs.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning, MadeInvoice } from '../lightning/lightning.ts'
import { fingerprints, type Secrets } from '../secrets/secrets.ts'
import type { NodeHealth } from './health.ts'
import { clientMark, type KeyedBy } from './keys.ts'
import {
  memoOf,
  namedIn,
  type Offer,
  type OrderRequest,
  type TooMany,
  termsUnder,
} from './order.ts'
import { insertName, NEW_ORDER, type OrderRow, type OrderStore } from './store.ts'

/** The order, and whether this call opened it; or why there is none. */
export type Opened =
  | { kind: 'opened'; order: OrderRow; isNew: boolean }
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

const UNAVAILABLE = { kind: 'checkout unavailable' } as const

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
}) {
  const { db, store, lightning, health, secrets, clock, log, quoteSeconds } = deps
  const [secretId] = fingerprints(secrets)
  /** The text of each plan on sale, which orders store. */
  const planTexts = new WeakMap<Offer['plan'], string>()

  function textOf(plan: Offer['plan']): string {
    const text = planTexts.get(plan) ?? jcs(plan)
    planTexts.set(plan, text)
    return text
  }

  /** Opens the order, or finds it open. */
  async function open({ orderId, by, request, offer, requestHash }: Opening): Promise<Opened> {
    const { plan, clientNetwork, maxOpen } = offer
    const { product, planId } = request
    const memo = memoOf(request)
    // The unit counts again. This spares the node the invoices of a client network that has too many.
    if (maxOpen !== undefined && !lightning.signInvoice) {
      const { count } = await store.openOf(clientNetwork, clock.now())
      if (count >= maxOpen) return tooMany(clientNetwork)
    }
    // A node inside this process has the invoice once its statements are committed.
    let invoice: MadeInvoice & { statements?: Statement[] }
    try {
      const ask = { amountMsat: plan.priceSats * 1000, memo, expirySeconds: quoteSeconds }
      invoice = lightning.signInvoice?.(ask) ?? (await lightning.createInvoice(ask))
    } catch (error) {
      // Without an invoice there is no payment hash, so the line cannot name the order.
      log.error({ event: 'lightning.invoice_failed', product, planId, reason: messageOf(error) })
      health.doubt()
      return UNAVAILABLE
    }
    const { statements = [], bolt11, paymentHash, network, expiresAt } = invoice
    const now = clock.now()
    const order: OrderRow = {
      ...NEW_ORDER,
      bolt11,
      network,
      payment_hash: paymentHash,
      quote_expires_at: expiresAt,
      order_id: orderId,
      secret_id: secretId,
      request_hash: requestHash,
      product,
      plan_id: planId,
      plan: textOf(plan),
      terms: jcs(termsUnder(plan, request)),
      amount_sats: plan.priceSats,
      client_network: clientNetwork,
      opened_by: clientMark(secrets, by?.client ?? null),
      contested: by === null ? 1 : 0,
      created_at: now,
      extends_id: request.extendsId ?? null,
    }
    const isLimited = maxOpen !== undefined
    const done = await attempt(
      db.write({
        lockKey: isLimited ? lockKeyOfTurn(clientNetwork) : orderId,
        statements: {
          turn: isLimited ? [takeTurn(clientNetwork)] : [],
          name: by === null ? [] : [insertName(orderId)],
          order: insertOrder(order),
          limit: isLimited ? [limitOpen(clientNetwork, now, maxOpen)] : [],
          reserve: offer.reserve?.(orderId) ?? [],
          invoice: statements,
        },
      }),
    )
    if ('rows' in done) {
      log.info({ event: 'order.quoted', ...namedIn(order), planId, amountSats: plan.priceSats })
      return { kind: 'opened', order, isNew: true }
    }
    if (done.refused === 'limit') return tooMany(clientNetwork)
    if (done.refused !== 'name' && done.refused !== 'order') {
      return { kind: 'rate limited', retryAfterSeconds: null }
    }
    // The key names an order already, perhaps as an alias.
    const { byKey } = await store.candidates([orderId], null)
    return byKey ? { kind: 'opened', order: byKey, isNew: false } : UNAVAILABLE
  }

  /** There is room again when the first quote among the unpaid orders of the network ends. */
  async function tooMany(clientNetwork: string): Promise<TooMany> {
    const now = clock.now()
    const { firstEnd } = await store.openOf(clientNetwork, now)
    const retryAfterSeconds = Math.ceil(((firstEnd ?? now) - now) / 1000)
    return { kind: 'rate limited', retryAfterSeconds }
  }

  return { open }
}

/** Opens an order. Refused if it exists. */
export const insertOrder = (order: OrderRow): Statement =>
  insertRow('purchase_order', order, 'on conflict (order_id) do nothing')

/**
 * Locks the opening of orders for a client network until the unit commits. It is the first statement of its
 * unit, and the unit's lock key is `lockKeyOfTurn`.
 */
export const takeTurn = (clientNetwork: string): Statement => ({
  text: `insert into opening_lock (bucket) values (cast($1 as integer))
    on conflict (bucket) do update set bucket = excluded.bucket`,
  values: [bucketOf(clientNetwork)],
})

export const lockKeyOfTurn = (clientNetwork: string): string => `opening ${bucketOf(clientNetwork)}`

/**
 * Refused if the client network has more than `max` unpaid orders, including the one that this unit has just
 * inserted. The count is exact only after `takeTurn`: without it, two units do not see each other's orders.
 * It counts the orders themselves, so there is no counter to reset.
 */
export const limitOpen = (clientNetwork: string, now: number, max: number): Statement => ({
  text: `update opening_lock set bucket = bucket where bucket = cast($1 as integer) and $4 >= (
      select count(*) from purchase_order
      where client_network = $2 and state = 'pending' and quote_expires_at > $3)`,
  values: [bucketOf(clientNetwork), clientNetwork, now, max],
  expect: 1,
})

/** A number below 256. */
const bucketOf = (clientNetwork: string): number =>
  Number.parseInt(hash('sha256', clientNetwork).slice(0, 2), 16)
