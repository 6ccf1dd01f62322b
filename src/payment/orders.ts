/**
 * The life of an order: quote → settle → deliver → seal. One order has one invoice, whichever flow shows
 * it. Each step is one conditional update: the call that changes the row has made the step.
 */
import type { Db, Statement } from '../db/db.ts'
import type { Clock, Deletion, DeletionTime } from '../lib/clock.ts'
import type { Json } from '../lib/jcs.ts'
import { objectIn } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning } from '../lightning/lightning.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { createAlarms } from './alarms.ts'
import { createAliases } from './aliases.ts'
import { type Claim, CREDENTIAL, createClaims, PROOF, reachOf } from './claims.ts'
import { createDelivering } from './delivering.ts'
import { createEnding } from './ending.ts'
import type { CheckedCredential, CredentialStatus } from './flows/flow.ts'
import type { NodeHealth } from './health.ts'
import { formerOrderIds, isKeyOf, orderIds } from './idempotency.ts'
import { createMatching, type Match } from './matching.ts'
import { createOneUrl, type OneUrl } from './one-url.ts'
import {
  isSameRequest,
  isSealed,
  type Offer,
  type OrderName,
  type OrderRequest,
  type Outcome,
  quoteOf,
  requestHash,
} from './order.ts'
import type { Products } from './provisioning.ts'
import { createQuoting } from './quoting.ts'
import { reseal } from './resealing.ts'
import { createSettling } from './settling.ts'
import { CONTESTED, createOrderStore, type OrderRow, type SettledBy } from './store.ts'
import { hasTombstone } from './tombstones.ts'

/** An order that exists. */
export type KnownOrder = {
  orderId: string
  paymentHash: string
  /** Whether the request came with a credential that proves the payment and was made for this request. */
  isProven: boolean
  /**
   * The outcome for this request. `isProven`: a preimage that opens the payment hash came with it. `body`:
   * a product reserves it again if the order was dead.
   */
  answer(ask: { isProven: boolean; body: Uint8Array }): Promise<Outcome>
}

/** The order of a purchase, if there is one. */
export type Found =
  | { kind: 'known'; order: KnownOrder }
  /** The credential proves a payment to us, but the store has no order for it. This was logged. */
  | { kind: 'lost' }
  | { kind: 'none' }

export type PollAsk = {
  key: string | null
  /** As in `OrderName`. Left out: the client is not known exactly. */
  client?: string | null
  isPrefetch: boolean
  admit?: (paymentHash: string) => Promise<{ isProven: boolean }>
}

/** The facts of an order that are read before a request is checked. `plan` is null if it is unreadable. */
export type Glance = { orderId: string; paymentHash: string | null; plan: Json | null }

/** A purchase under one name, from the request that asks for it. */
export type Purchase = {
  /** Finds the order of the purchase: by its key or by its credential. */
  find(request: OrderRequest, credential: CheckedCredential<unknown>): Promise<Found>
  /** The facts of the order with this key, or with this invoice, before the body has arrived. */
  glance(paymentHash: string | null): Promise<Glance | null>
  /** Opens an order and makes its invoice. Of several calls at once, one does and all get the same. */
  open(request: OrderRequest, offer: Offer): Promise<Outcome>
}

export type Orders = {
  purchase(name: OrderName): Purchase
  oneUrl: OneUrl
  /** Whether an order with this payment hash is or was in the store. */
  hasSeen(paymentHash: string): Promise<boolean>
  /** How many unpaid orders would extend a capability. */
  openExtensions(publicId: string): Promise<number>
  /** Whether a new order can be opened now: the node takes payments. */
  isSelling(): boolean
  /**
   * The outcome for a poll. A key, if given, must be the order's own. `admit` is called once the order is
   * found and before it changes; if it throws, the poll is refused. It resolves to whether the poll came
   * with a preimage that opens the payment hash.
   */
  poll(orderId: string, ask: PollAsk): Promise<Outcome>
  /** Looks up an order at the node, by its payment hash, and settles or ends it. */
  reconcile(paymentHash: string, by: SettledBy): Promise<void>
  /** The same for an order that was read already. False if the node was unreachable. */
  lookUp(order: OrderRow, by: SettledBy): Promise<boolean>
  /** Deletes orders that a process left before they had an invoice, and frees what they reserved. */
  dropAbandoned(before: DeletionTime): Promise<void>
  /**
   * Encrypts the seeds under an older secret again, under the current one.
   * @returns how many live orders were made under a secret that is not configured.
   */
  reseal(): Promise<number>
}

/** The order id under each configured secret, the current one first. */
type OrderIds = [string, ...string[]]

/** The orders of a store, at one node. */
export function createOrders(deps: {
  db: Db
  lightning: Lightning
  health: NodeHealth
  secrets: Secrets
  clock: Clock
  deletion: Pick<Deletion, 'now'>
  log: Log
  products: Products
  quoteSeconds: number
  /** Tells those who follow a capability that it was extended. */
  onExtended?: (publicId: string) => void
}): Orders {
  const { db, health, secrets, clock, log, products } = deps
  const store = createOrderStore(db)
  const end = createEnding({ db, products })
  const quoting = createQuoting({ ...deps, store, end })
  const { settle, prove, lookUp, refresh } = createSettling({ ...deps, store, end })
  const { answer, handOver } = createDelivering({ ...deps, store })
  const claims = createClaims({ store, secrets })
  const aliases = createAliases({ db, secrets })
  const match = createMatching({ db, store, clock })

  /** Alarms about proven payments whose order is lost. */
  const isAlarmDue = createAlarms(clock)

  /**
   * A preimage is the proof by itself. The node is not asked: it may be unreachable, may have forgotten the
   * invoice, or may have given it up before the payment arrived.
   */
  async function redeem(
    order: OrderRow,
    { claim, body }: { claim: Claim; body: Uint8Array | null },
  ): Promise<Outcome> {
    // An order that only a credential delivers is one from its birth, so its row need not be read again.
    if (order.contested > reachOf(claim)) return { kind: 'proof of payment required' }
    const restored = restoring(order, body)
    const isUnfulfilled = order.state === 'paid_unfulfilled' && restored.length > 0
    if (order.state === 'pending' || order.state === 'dead' || isUnfulfilled) {
      const settled = await settle(order, { by: 'preimage', delivery: 'now', restored })
      if (settled) return handOver(settled.order, settled.seed)
    }
    const current = await store.find([order.order_id])
    if (!current) return { kind: 'order not found' }
    // Never a challenge here: the client would pay a second time.
    return current.state === 'pending'
      ? { kind: 'checkout unavailable' }
      : answer(current, () => claim)
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

  function outcomeOfSealed(order: OrderRow): Outcome {
    if (order.state === 'refunded') return { kind: 'order refunded' }
    return { kind: order.delivered_at === null ? 'order expired' : 'already delivered' }
  }

  /** The checks of docs/design.md in their order, once the request is known to be the order's. */
  async function outcomeOf(
    order: OrderRow,
    {
      status,
      proof,
      claim,
      body,
    }: { status: CredentialStatus; proof: Claim; claim: () => Claim; body: Uint8Array | null },
  ): Promise<Outcome> {
    if (isSealed(order, clock.now())) return outcomeOfSealed(order)
    if (status === 'verified') return redeem(order, { claim: proof, body })
    if (status === 'mismatched') {
      // The payment is proven, whichever request the credential was made for.
      await prove(order, () => restoring(order, body))
      return { kind: 'invalid credential', quote: null }
    }
    const current = await refresh(order)
    if (status === 'none' || current.state === 'dead') return answer(current, claim)
    const quote = current.state === 'pending' ? quoteOf(current) : null
    return { kind: 'invalid credential', quote }
  }

  function logLost(paymentHash: string, { product, planId }: OrderRequest): void {
    if (!isAlarmDue(paymentHash)) return
    log.error({ event: 'order.proven_unknown', paymentHash, product, planId })
  }

  function knownOrder(
    match: Extract<Match, { kind: 'order' }>,
    { name, ids, request }: { name: OrderName; ids: OrderIds; request: OrderRequest },
  ): KnownOrder {
    const { order, by } = match
    const { order_id: orderId } = order
    return {
      orderId,
      paymentHash: order.payment_hash ?? '',
      isProven: match.status === 'verified',
      async answer({ isProven, body }) {
        if (!isSameRequest(order, request)) {
          return { kind: 'idempotency key reused with a different request' }
        }
        // A preimage without a credential counts only together with the key of its order.
        const status = isProven && by !== 'credential' ? 'verified' : match.status
        if (status === 'verified' && by === 'credential') {
          const [aliasId] = ids
          await aliases.add({ aliasId, orderId, key: name.key, now: clock.now() })
        }
        const isUse = by === 'key' && status !== 'verified' && status !== 'mismatched'
        const used = isUse ? await claims.afterUse(order, name) : order
        const claim = (): Claim => claims.ofKey(used, name, by === 'alias')
        const proof = match.status === 'verified' ? CREDENTIAL : PROOF
        return outcomeOf(used, { status, proof, claim, body })
      },
    }
  }

  function purchase(name: OrderName): Purchase {
    const ids: OrderIds = orderIds(secrets, name)

    /** Orders under an old id come first: nobody else can have opened one at this address. */
    const findNamed = () => store.findNamed([...formerOrderIds(secrets, name), ...ids])

    return {
      async find(request, credential) {
        const named = await findNamed()
        const found = await match(
          named && named.order.state !== 'opening' ? named : null,
          request,
          credential,
        )
        if (found.kind === 'none') return found
        if (found.kind === 'order') {
          return { kind: 'known', order: knownOrder(found, { name, ids, request }) }
        }
        logLost(found.paymentHash, request)
        return { kind: 'lost' }
      },

      async glance(paymentHash) {
        const byHash = paymentHash === null ? null : await store.findByPaymentHash(paymentHash)
        const order = byHash ?? (await findNamed())?.order
        if (!order) return null
        const { order_id: orderId, payment_hash } = order
        return { orderId, paymentHash: payment_hash, plan: objectIn(order.plan) as Json | null }
      },

      async open(request, offer) {
        if (!health.isHealthy()) return { kind: 'checkout unavailable' }
        const [orderId] = ids
        const hash = requestHash(request, offer.plan)
        const opened = await quoting.open({ orderId, name, request, offer, requestHash: hash })
        if (opened.kind !== 'opened') return opened
        const { order, openedAs } = opened
        // An order that existed before may have been opened under another plan.
        if (!hash.equals(order.request_hash) && !isSameRequest(order, request)) {
          return { kind: 'idempotency key reused with a different request' }
        }
        // Of several calls at once, some may come from another client than the one who opened it.
        const isOpener = openedAs === name && name.client !== null
        const used = isOpener ? order : await claims.afterUse(order, name)
        return answer(used, () => claims.ofKey(used, name, false))
      },
    }
  }

  return {
    purchase,
    oneUrl: createOneUrl({
      ...{ db, store, secrets, clock, health, quoting, prove, refresh, answer, logLost },
      redeem: (order) => redeem(order, { claim: CREDENTIAL, body: null }),
    }),

    hasSeen: async (paymentHash) =>
      (await store.findByPaymentHash(paymentHash)) !== null ||
      (await hasTombstone(db, paymentHash)),

    openExtensions: store.openExtensions,

    isSelling: health.isHealthy,

    async poll(orderId, { key, client = null, isPrefetch, admit }) {
      const found = await store.find([orderId])
      if (!found || found.state === 'opening') return { kind: 'order not found' }
      // Nobody is told its id.
      if (found.contested === CONTESTED.credentialOnly) return { kind: 'order not found' }
      const { isProven } = (await admit?.(found.payment_hash ?? '')) ?? { isProven: false }
      const isOwnKey =
        key === null || isKeyOf(secrets, key, found.key_hash) || (await aliases.has(orderId, key))
      if (!isOwnKey) return { kind: 'order not found' }
      if (isProven && !isPrefetch) {
        return isSealed(found, clock.now())
          ? outcomeOfSealed(found)
          : redeem(found, { claim: PROOF, body: null })
      }
      const order = await refresh(found)
      if (isPrefetch && order.state === 'settled') return { kind: 'pending', quote: quoteOf(order) }
      return answer(order, () => claims.ofPoll(order, { key, client }))
    },

    async reconcile(paymentHash, by) {
      const order = await store.findByPaymentHash(paymentHash)
      if (order?.state === 'pending' || order?.state === 'dead') await lookUp(order, by)
    },

    lookUp,
    dropAbandoned: quoting.dropAbandoned,
    reseal: () => reseal({ db, store, secrets, clock }),
  }
}
