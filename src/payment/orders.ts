/**
 * The life of an order: quote → settle → deliver → seal. One order has one invoice, whichever flow shows
 * it. Each step is one conditional update: the call that changes the row has made the step.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { HeldClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Json } from '../lib/jcs.ts'
import { objectIn } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { isPlanId, isProduct } from '../lib/product-names.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { copiedInvoice, InvalidInvoice, type Invoice, readableInvoice } from '../protocol/bolt11.ts'
import { payeeOf } from '../protocol/bolt11-sign.ts'
import { paymentHashOf, provesPayment } from '../protocol/preimage.ts'
import { fingerprints, type Secrets, unseal } from '../secrets/secrets.ts'
import { type Ask, type Candidates, decide, type Verdict } from './deciding.ts'
import { paymentHashIn } from './flows/flow.ts'
import type { NodeHealth } from './health.ts'
import { isOpener, type KeyedBy, type OrderIds, orderIds, possibleIds } from './keys.ts'
import {
  type Deliverable,
  endOf,
  grantOf,
  isExtended,
  isOver,
  isReplacement,
  isSameRequest,
  isSealed,
  namedIn,
  type Offer,
  type OrderRequest,
  type Outcome,
  quoteOf,
  requestHash,
} from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import { createQuoting } from './quoting.ts'
import { findRefund } from './sales.ts'
import { createAlarms, createSettling } from './settling.ts'
import {
  contestOrder,
  createOrderStore,
  deliverOrder,
  holdOrder,
  insertAlias,
  type OrderRow,
} from './store.ts'
import { findTombstone } from './tombstones.ts'

/** What is to be done about a purchase request. */
export type Decision =
  /** It is a new purchase: `open` opens its order. */
  | { kind: 'new' }
  /**
   * It proves a payment to us whose order the store does not have, or its `Payment-Preimage` may. Its client is never
   * asked to pay.
   */
  | { kind: 'lost'; isProven: boolean }
  | {
      kind: 'known'
      orderId: string
      /** Whether the request proves the payment. */
      isProven: boolean
      /** Whether its `Payment-Preimage` is not that of the order. */
      hasWrongPreimage: boolean
      /** Does it. `body`: a product reserves it again if the order was dead. */
      act(body: Uint8Array | null): Promise<Outcome | Deliverable>
    }

/**
 * What a client has shown of an order: proof of the payment, that it opened the order, the order's key, its id, or
 * no more than a key that others may have sent.
 */
type Claim = 'proof' | 'opener' | 'key' | 'id' | 'nothing'

export type PollAsk = {
  key: string | null
  /** What stood in `Payment-Preimage`, if anything did. */
  preimage?: string | null
  isPrefetch: boolean
  /** Called once the order is found and before it changes. If it throws, the poll is refused. */
  admit?: (shown: { isProven: boolean; hasWrongPreimage: boolean }) => Promise<void>
}

const UNPROVEN: Outcome = { kind: 'proof of payment required' }
const UNAVAILABLE: Outcome = { kind: 'checkout unavailable' }
const NOT_FOUND: Outcome = { kind: 'order not found' }

export type Orders = ReturnType<typeof createOrders>
export type LookedAhead = Awaited<ReturnType<Orders['lookAhead']>>

/** The orders of a store, at one node. */
export function createOrders(deps: {
  db: Db
  lightning: Lightning
  health: NodeHealth
  secrets: Secrets
  clock: HeldClock
  log: Log
  products: Products
  quoteSeconds: number
  /** Tells those who follow a capability that it was extended. */
  onExtended?: (publicId: string) => void
}) {
  const { db, health, secrets, clock, log, products } = deps
  const store = createOrderStore(db)
  const quoting = createQuoting({ ...deps, store })
  const { settle, prove, lookUp, refresh } = createSettling({ ...deps, store })
  /** Alarms about proven payments whose order is lost. */
  const isAlarmDue = createAlarms(clock)

  /** Reads the orders that a request may mean: by its key, and by the invoice that its credential names. */
  async function candidates(by: KeyedBy | null, paymentHash: string | null): Promise<Candidates> {
    if (by === null && paymentHash === null) return { byKey: null, byHash: null }
    return store.candidates(by === null ? [] : orderIds(secrets, by), paymentHash)
  }

  const isForgotten = async (paymentHash: string): Promise<boolean> =>
    (await findTombstone(db, paymentHash)) !== null

  /** What the headers of a purchase say of its order, before its body has arrived. */
  async function lookAhead({ by, credential, preimage }: Omit<Ask, 'request'>) {
    const paymentHash = paymentHashIn(credential)
    const read = await candidates(by, paymentHash)
    const order = read.byHash ?? read.byKey
    const hash = order?.payment_hash ?? null
    // What is over buys nothing more: its proof would hold the memory of those that have paid, again and again.
    const isEnded = order !== null && isSealed(order, clock.now())
    // The preimage opens the payment hash that the credential names; we must have an order with that hash.
    const isPaid =
      (credential.kind === 'verified' || credential.kind === 'mismatched') && hash === paymentHash
    return {
      orderId: order?.order_id ?? null,
      /** Null if it is unreadable. */
      plan: order ? (objectIn(order.plan) as Json | null) : null,
      isProven: !isEnded && (isPaid || provesPayment(preimage ?? '', hash ?? '')),
      /** For `decide`, which reads nothing again if the body does not change the credential. */
      paymentHash,
      read,
    }
  }

  async function decideOn(ask: Ask, ahead: LookedAhead | null = null): Promise<Decision> {
    const { by, request, credential, preimage = null } = ask
    const paymentHash = paymentHashIn(credential)
    const isRead = ahead !== null && ahead.paymentHash === paymentHash
    const found = isRead ? ahead.read : await candidates(by, paymentHash)
    const isAlone = credential.kind === 'verified' && found.byHash === null
    const verdict = decide(ask, {
      ...found,
      isForgotten: isAlone && paymentHash !== null && (await isForgotten(paymentHash)),
      now: clock.now(),
    })
    if (verdict.do === 'raise the alarm') {
      logLost(verdict.paymentHash, request)
      return { kind: 'lost', isProven: true }
    }
    if (verdict.do === 'open') {
      const shown = by === null || preimage === null ? null : paymentHashOf(preimage)
      const isNew = shown === null || (await isDealtWith(shown))
      return isNew ? { kind: 'new' } : { kind: 'lost', isProven: false }
    }
    const { order } = verdict
    const isShown = preimage !== null && provesPayment(preimage, order.payment_hash)
    const isCredited = credential.kind === 'verified' && order.payment_hash === paymentHash
    return {
      kind: 'known',
      orderId: order.order_id,
      isProven: isShown || isCredited,
      hasWrongPreimage: preimage !== null && !isShown,
      act: (body) => act(verdict, ask, body),
    }
  }

  async function act(
    verdict: Extract<Verdict, { order: OrderRow }>,
    ask: Ask,
    body: Uint8Array | null,
  ): Promise<Outcome | Deliverable> {
    const { order, isByKey } = verdict
    switch (verdict.do) {
      case 'refuse another request':
        return { kind: 'idempotency key reused with a different request' }
      case 'say how it ended':
        return hand(order, 'nothing')
      case 'redeem':
        // A program that makes a new key for each attempt: from now on that key names this order too.
        if (!isByKey && ask.by !== null) await addAlias(order, orderIds(secrets, ask.by))
        return ask.isPeek ? peek(order) : redeem(order, body)
      case 'settle':
        await prove(order, () => restoring(order, body))
        return { kind: 'invalid credential', quote: null }
      case 'show': {
        const seen = await seenBy(ask.by, await refresh(order))
        return hand(seen.order, seen.claim)
      }
      case 'show, and refuse the credential': {
        const seen = await seenBy(ask.by, await refresh(order))
        if (seen.order.state === 'dead') return { kind: 'order expired' }
        const quote = seen.order.state === 'pending' ? quoteOf(seen.order) : null
        return { kind: 'invalid credential', quote }
      }
    }
  }

  /** The order may be deleted meanwhile: a name that leads to none would bar its key for good. */
  async function addAlias({ order_id: orderId }: OrderRow, [alias]: OrderIds): Promise<void> {
    const statements = { order: holdOrder(orderId), alias: insertAlias(alias, orderId) }
    await attempt(db.write({ lockKey: alias, statements }))
  }

  /**
   * The order as a client who has proven nothing sees it. Whoever did not open it is shown the quote of an open one only
   * once the order is contested: from then on it is delivered to proof alone.
   */
  async function seenBy(
    by: KeyedBy | null,
    order: OrderRow,
  ): Promise<{ order: OrderRow; claim: Claim }> {
    // Nobody else's extension is worth anything: its answer has no token.
    const isExtension = order.extends_id !== null
    if (isExtension || (by !== null && isOpener(secrets, by.client, order))) {
      return { order, claim: 'opener' }
    }
    return { order: order.state === 'pending' ? await contested(order) : order, claim: 'nothing' }
  }

  async function contested(order: OrderRow): Promise<OrderRow> {
    if (order.contested === 1) return order
    const { order_id: orderId } = order
    return (await store.one(orderId, contestOrder(orderId))) ?? (await again(order)) ?? order
  }

  /**
   * A preimage is the proof by itself. The node is not asked: it may be unreachable, may have forgotten the
   * invoice, or may have given it up before the payment arrived.
   */
  async function redeem(order: OrderRow, body: Uint8Array | null): Promise<Outcome> {
    if (order.state === 'settled') return hand(order, 'proof')
    const restored = restoring(order, body)
    const isUnfulfilled = order.state === 'paid_unfulfilled' && restored.length > 0
    if (order.state === 'pending' || order.state === 'dead' || isUnfulfilled) {
      const settled = await settle(order, { by: 'preimage', delivery: 'now', restored })
      if (settled) return handOver(settled.order, settled.seed)
    }
    const current = await again(order)
    if (!current) return NOT_FOUND
    // Never a challenge here: the client would pay a second time.
    return current.state === 'pending' ? UNAVAILABLE : hand(current, 'proof')
  }

  /** Settles a proven order, and says whether it could be delivered. */
  async function peek(order: OrderRow): Promise<Outcome | Deliverable> {
    const current = await prove(order)
    const { payment_hash: paymentHash, settled_at: settledAt } = current
    if (current.state === 'settled' && !isOver(current, clock.now()) && settledAt) {
      return { kind: 'deliverable', paymentHash, settledAt }
    }
    // It could not be settled, or has ended since: there is nothing that this could deliver.
    return current.state === 'pending' ? UNAVAILABLE : hand(current, 'proof')
  }

  /**
   * The statements that reserve the body of a paid repeat again: the order may have died, and freed its
   * reservation, at any moment.
   */
  function restoring(order: OrderRow, body: Uint8Array | null): Statement[] {
    if (body === null) return []
    const { order_id: orderId, client_network: clientNetwork } = order
    return products[order.product]?.restore?.({ orderId, clientNetwork, body }) ?? []
  }

  /** The outcome of an order as it stands, for a client with this claim. A paid one is delivered if that suffices. */
  async function hand(order: OrderRow, claim: Claim): Promise<Outcome> {
    switch (order.state) {
      case 'pending':
        return { kind: 'pending', quote: quoteOf(order) }
      case 'dead':
        return { kind: 'order expired' }
      case 'refunded':
        return { kind: 'order refunded' }
      case 'paid_unfulfilled':
        return mayHave(order, claim) ? UNAVAILABLE : UNPROVEN
      case 'settled':
        return order.delivered_at === null ? deliver(order, claim) : repeat(order, claim)
    }
  }

  async function deliver(order: OrderRow, claim: Claim): Promise<Outcome> {
    const now = clock.now()
    if (isOver(order, now)) return { kind: 'order expired' }
    if (!mayHave(order, claim)) return UNPROVEN
    const { order_id: orderId } = order
    const delivered = await store.one(orderId, deliverOrder(orderId, now, claim === 'proof'))
    if (delivered) return handOver(delivered)
    const current = await again(order)
    if (!current) return NOT_FOUND
    if (current.delivered_at !== null) return repeat(current, claim)
    return isOver(current, now) ? { kind: 'order expired' } : UNPROVEN
  }

  function repeat(order: OrderRow, claim: Claim): Outcome {
    if (isOver(order, clock.now())) return { kind: 'already delivered' }
    if (!mayHave(order, claim)) return UNPROVEN
    // The order's id alone gets the first answer, and nobody else's.
    return claim === 'id' ? { kind: 'already delivered' } : deliveredAs(order)
  }

  function handOver(order: OrderRow, seed?: Uint8Array): Outcome {
    log.info({ event: 'order.delivered', ...namedIn(order) })
    return deliveredAs(order, seed)
  }

  function deliveredAs(order: OrderRow, seed = openedSeed(order)): Outcome {
    const { payment_hash, settled_at } = order
    if (settled_at === null) throw new Error('the order is not settled')
    return {
      kind: 'delivered',
      body: settledPayment(order, seed, products),
      paymentHash: payment_hash,
      settledAt: settled_at,
    }
  }

  function openedSeed(order: OrderRow): Uint8Array {
    const opened = order.seed && unseal(secrets.seedKeys, order.seed, order.order_id)
    if (!opened) throw new Error('the delivery seed of a settled order does not open')
    return opened.plain
  }

  const again = ({ order_id: orderId }: OrderRow): Promise<OrderRow | null> => store.find(orderId)

  async function isKeyOf(key: string, order: OrderRow): Promise<boolean> {
    const ids = possibleIds(secrets, key, order)
    return ids.includes(order.order_id) || store.isNamed(order.order_id, ids)
  }

  /**
   * Whether the payment has an order of this store, or had. One that was restored may have an id that its buyer does not
   * know: until it is over, the buyer waits for the operator.
   */
  async function isDealtWith(paymentHash: string): Promise<boolean> {
    const order = await store.findByPaymentHash(paymentHash)
    if (order === null) return isForgotten(paymentHash)
    return order.restored_at === null || isSealed(order, clock.now())
  }

  /** Whether our node has signed this invoice. Nobody knows that of a node whose key others share. */
  function isOurs(invoice: Invoice): boolean {
    const nodeId = health.nodeId()
    try {
      return nodeId !== null && payeeOf(invoice) === nodeId
    } catch (error) {
      if (error instanceof InvalidInvoice) return false
      throw error
    }
  }

  /**
   * The outcome for a buyer who shows the whole invoice and its preimage. Nodes on the way of a payment learn its hash
   * and preimage, but never the invoice. An invoice that the store does not have (of an order that was deleted, lost or
   * restored) has to be signed by our node.
   * @param guess called for what proves no order of the store, before a signature is checked: that takes long, and
   *   anybody can sign an invoice. If it throws, the recovery is refused.
   */
  async function recover(
    text: string,
    preimage: string,
    guess: () => Promise<void>,
  ): Promise<Outcome> {
    const invoice = readableInvoice(copiedInvoice(text))
    const isPaid = invoice !== null && provesPayment(preimage, invoice.paymentHash)
    const order = isPaid ? await store.findByPaymentHash(invoice.paymentHash) : null
    if (order !== null && isPaid) {
      const isShown = order.restored_at === null ? order.bolt11 === invoice.bolt11 : isOurs(invoice)
      if (isShown) return redeem(order, null)
    }
    await guess()
    return order === null && isPaid && isOurs(invoice) ? recoverDeleted(invoice) : NOT_FOUND
  }

  async function recoverDeleted(invoice: Invoice): Promise<Outcome> {
    const { paymentHash } = invoice
    const [tombstone, refund] = await Promise.all([
      findTombstone(db, paymentHash),
      findRefund(db, paymentHash),
    ])
    if (refund !== null) return { kind: 'order refunded' }
    if (tombstone?.ended === 'used') return { kind: 'already delivered' }
    if (tombstone?.ended === 'aged') return { kind: 'order expired' }
    const sold = soldBy(invoice)
    // The operator may use the node for other things.
    if (sold !== null) logLost(paymentHash, sold)
    return NOT_FOUND
  }

  function logLost(
    paymentHash: string,
    { product, planId }: Pick<OrderRequest, 'product' | 'planId'>,
  ): void {
    if (!isAlarmDue(paymentHash)) return
    log.error({ event: 'order.proven_unknown', paymentHash, product, planId })
  }

  return {
    lookAhead,
    /** What is to be done about a purchase request. `ahead`: what `lookAhead` has read of it. */
    decide: decideOn,

    /**
     * Makes an invoice and opens its order. Of several calls at once with one key, one opens it and all get the same;
     * without a key, each order is opened for one request alone.
     */
    async open(by: KeyedBy | null, request: OrderRequest, offer: Offer): Promise<Outcome> {
      if (!health.isHealthy()) return UNAVAILABLE
      const orderId = by === null ? newId('order') : orderIds(secrets, by)[0]
      const hash = requestHash(request, offer.plan)
      const opened = await quoting.open({ orderId, by, request, offer, requestHash: hash })
      if (opened.kind !== 'opened') return opened
      const { order } = opened
      // An order that existed before may have been opened under another plan.
      if (!hash.equals(order.request_hash) && !isSameRequest(order, request)) {
        return { kind: 'idempotency key reused with a different request' }
      }
      // Of several calls at once, some may come from another client than the one who opened it.
      if (opened.isNew) return hand(order, 'opener')
      const seen = await seenBy(by, order)
      return hand(seen.order, seen.claim)
    },

    recover,
    openExtensions: store.openExtensions,
    /** Whether a new order can be opened now: the node takes payments. */
    isSelling: health.isHealthy,

    /** The outcome for a poll. A key, if given, must be the order's own. It never contests the order. */
    async poll(
      orderId: string,
      { key, preimage = null, isPrefetch, admit }: PollAsk,
    ): Promise<Outcome> {
      const order = await store.find(orderId)
      if (!order) return NOT_FOUND
      const isProven = preimage !== null && provesPayment(preimage, order.payment_hash)
      await admit?.({ isProven, hasWrongPreimage: preimage !== null && !isProven })
      if (key !== null && !(await isKeyOf(key, order))) return NOT_FOUND
      if (isSealed(order, clock.now())) return hand(order, 'nothing')
      if (isPrefetch) {
        const current = await refresh(order)
        if (current.state !== 'settled') return hand(current, 'id')
        return { kind: 'pending', quote: quoteOf(current) }
      }
      if (isProven && key !== null) return redeem(order, null)
      // Without the key, a preimage proves that it was paid, and not by whom.
      const current = isProven ? await prove(order) : await refresh(order)
      return hand(current, key === null ? 'id' : 'key')
    },

    /** Looks up an order at the node, by its payment hash, and settles or ends it. */
    async reconcile(paymentHash: string, by: Parameters<typeof lookUp>[1]): Promise<void> {
      const order = await store.findByPaymentHash(paymentHash)
      if (order?.state === 'pending' || order?.state === 'dead') await lookUp(order, by)
    },

    /** The same for an order that was read already. False if the node was unreachable. */
    lookUp,
    /** How many live orders were made under a secret that is not configured. */
    foreign: (): Promise<number> => store.foreign(fingerprints(secrets), clock.now()),
  }
}

/**
 * Whether an order is delivered to a client with this claim. A contested one takes proof. So does what was sold in
 * place of an extension: who asks for an extension expects no tokens, and may let others repeat its request.
 */
function mayHave(order: OrderRow, claim: Claim): boolean {
  if (claim === 'proof') return true
  return claim !== 'nothing' && order.contested === 0 && !isReplacement(order)
}

/** The product and plan that the text of our invoices names; null for an invoice about something else. */
function soldBy({ description }: Invoice): Pick<OrderRequest, 'product' | 'planId'> | null {
  const [, name = '', planId = ''] = /^Mayfly ([A-Z]+) ([a-z]+)/.exec(description ?? '') ?? []
  const product = name.toLowerCase()
  return isProduct(product) && isPlanId(planId) ? { product, planId } : null
}

/** The JSON of SettledPayment, or of an extension: the same bytes each time. */
export function settledPayment(order: OrderRow, seed: Uint8Array, products: Products): string {
  if (isExtended(order)) {
    return JSON.stringify({ settled: true, extended: true, expiresAt: endOf(order) })
  }
  const resource = provisioningOf(products, order.product).capability(grantOf(order, seed))
  return JSON.stringify({ settled: true, resource })
}
