/**
 * A purchase, from the request to its answer. The request is checked completely before an invoice exists; then the order
 * of its Idempotency-Key or credential is repeated, or a new one is opened.
 */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Binding } from '../../payment/flows/flow.ts'
import { extensionRoute, type KeyedBy, purchaseRoute } from '../../payment/keys.ts'
import { type OrderRequest, termsUnder } from '../../payment/order.ts'
import type { LookedAhead, Orders } from '../../payment/orders.ts'
import type { App } from '../app.ts'
import { declaredBytes, inScope, readBody, receiveBody, requirePlainBody } from '../body.ts'
import {
  type ClientAddress,
  clientNetwork,
  clientScope,
  type OpeningClient,
} from '../client-address.ts'
import { idempotencyKey, invalidKey, preimageIn } from '../credentials.ts'
import { problem } from '../errors.ts'
import { LIMITS, type Limits } from '../limits.ts'
import type { Memory } from '../memory.ts'
import { paidRouteSchema } from './described.ts'
import { type Flows, readAttempt, sendOutcome } from './flows.ts'
import type { NewOrders, Room } from './new-orders.ts'
import type { PaidRoute } from './route.ts'

/** The parts that every paid route needs. */
export type Paying = {
  orders: Orders
  flows: Flows
  clientAddress: ClientAddress
  openingClient: OpeningClient
  /** Whether the service made this key itself, so that nobody can guess it. */
  isOwnKey: (key: string) => boolean
  newOrders: NewOrders
  limits: Limits
  memory: Memory
}

/** Stands for the hash of a body that has not arrived yet: a credential names its order without it. */
const NO_BODY = '0'.repeat(64)

/** Stands for the client of a key that the service made. */
const OWN_KEY = 'a key of ours'

/** A body up to this size needs no memory budget: the headers of a request may be as large. */
const SMALL_BODY_BYTES = 16 * 1024

/** One request to a paid route. `by` is null where the address says all, so that a credential alone names the order. */
type Purchase = {
  request: FastifyRequest
  reply: FastifyReply
  by: KeyedBy | null
  preimage: string | null
  network: string
}

/** What the headers of a purchase say before its body arrives: its order, and the room of a new one. */
type Ahead = { seen: LookedAhead; maxBytes: number; room: Room | null }

export function mountPaidRoute(app: App, deps: Paying, route: PaidRoute): void {
  const { orders, flows, clientAddress, openingClient, isOwnKey, limits, memory } = deps
  const { newOrders } = deps
  const { oneUrl, tooLarge } = route

  inScope(app, (scope) => {
    scope.removeAllContentTypeParsers()
    // The handler reads the bytes, once the headers are right.
    const type = oneUrl ? '*' : route.contentType
    scope.addContentTypeParser(type, (_request, _payload, done) => done(null))
    for (const method of oneUrl?.methods ?? ['POST']) {
      const describe = () => oneUrl?.describe(method) ?? paidRouteSchema(route)
      scope.route({
        method,
        url: route.path,
        config: oneUrl ? { describe } : {},
        schema: describe(),
        // The order is bound to the bytes of the body, so the handler parses those.
        validatorCompiler: () => () => true,
        handler: handle,
      })
    }
  })

  // The pattern of the poll would take the product for the id of an order.
  if (!oneUrl) {
    app.get(route.path, { config: { isRefused: true } }, async () => {
      throw problem('method not allowed', { allow: 'POST' })
    })
  }

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const by = oneUrl ? null : keyedBy(request)
    requirePlainBody(request)
    route.checkHeaders?.(request)
    const preimage = preimageIn(request)
    const network = clientNetwork(clientAddress(request.raw))
    const purchase: Purchase = { request, reply, by, preimage, network }
    const isLarge = route.maxBodyBytes() > SMALL_BODY_BYTES || route.bodyBytesUnder !== undefined
    const ahead = isLarge ? await lookAhead(purchase) : null
    const body = await receive(purchase, ahead)
    const { planId, terms } = route.parse(body, request)
    const binding = bindingOf(request, hash('sha256', oneUrl?.isEmpty ? '' : body, 'hex'))
    const attempt = readAttempt(request, binding, flows)
    const wanted: OrderRequest = {
      product: route.product,
      planId,
      terms,
      bodySha256: binding.bodySha256,
      ...(route.extendsId ? { extendsId: route.extendsId(request) } : {}),
    }
    const rendering = { attempt, binding, flows, shown: oneUrl?.shown(request) }
    const isPeek = request.method === 'HEAD'
    const ask = { by, request: wanted, credential: attempt.credential, preimage, isPeek }
    const decision = await orders.decide(ask, ahead?.seen)
    // A client that has proven a payment to us is never asked to pay.
    if (decision.kind === 'lost') {
      if (!decision.isProven) await takeGuess({ request, reply }, deps)
      throw problem('order not found')
    }
    if (decision.kind === 'new') {
      return sendOutcome(reply, await open(purchase, { wanted, body, ahead }), rendering)
    }
    const isTaken = ahead !== null && ahead.seen.orderId !== null
    await takeRepeat({ request, reply }, { ...decision, isTaken }, deps)
    return sendOutcome(reply, await decision.act(body), rendering)
  }

  function keyedBy(request: FastifyRequest): KeyedBy {
    const key = idempotencyKey(request)
    if (key === null) throw invalidKey()
    const isExtension = route.extendsId !== undefined
    return {
      route: isExtension ? extensionRoute(route.product) : purchaseRoute(route.product),
      key,
      // Whoever sends a key that we made is its buyer, from any address.
      client: isOwnKey(key) ? OWN_KEY : openingClient(request.raw),
    }
  }

  function bindingOf(request: FastifyRequest, bodySha256: string): Binding {
    return {
      product: route.product,
      method: oneUrl?.methods[0] ?? request.method,
      target: oneUrl?.target(request) ?? request.originalUrl,
      bodySha256,
      ...(oneUrl ? { isOneUrl: true } : {}),
    }
  }

  /** A large body costs its sender nothing, so that it takes from its limit before its bytes are read. */
  async function lookAhead(purchase: Purchase): Promise<Ahead> {
    const { request, reply, by, preimage } = purchase
    const { credential } = readAttempt(request, bindingOf(request, NO_BODY), flows)
    const seen = await orders.lookAhead({ by, credential, preimage })
    const { orderId, plan, isProven } = seen
    // An order keeps the plan that it was sold with, whatever is on sale now.
    const maxBytes = Math.max(route.maxBodyBytes(), plan ? (route.bodyBytesUnder?.(plan) ?? 0) : 0)
    // A body that is refused for its size takes nothing.
    if ((declaredBytes(request.raw) ?? 0) > maxBytes) throw problem(tooLarge ?? 'request too large')
    if (orderId !== null) await limits.take(LIMITS.poll, pollBucket(orderId, isProven), reply)
    const isNew = orderId === null && !isProven
    return { seen, maxBytes, room: isNew ? await admit(purchase) : null }
  }

  async function receive(
    { request, reply, network }: Purchase,
    ahead: Ahead | null,
  ): Promise<Buffer> {
    if (request.method !== 'POST') return Buffer.alloc(0)
    if (!ahead) return readBody(request.raw, route.maxBodyBytes(), { tooLarge })
    const kind = ahead.seen.isProven ? 'paid' : 'unpaid'
    const limit = ahead.maxBytes
    const { body } = await receiveBody(request, reply, { memory, kind, network, limit, tooLarge })
    return body
  }

  /** The live catalogue, the node, the operator's rules and the limits on new orders count only here. */
  async function open(
    purchase: Purchase,
    { wanted, body, ahead }: { wanted: OrderRequest; body: Buffer; ahead: Ahead | null },
  ) {
    const { request, reply, by, network } = purchase
    const { planId } = wanted
    const plan = route.plan(planId)
    if (!plan) throw problem('invalid plan')
    await route.admit?.({ planId, plan, request, reply })
    // An invalid request takes nothing from the limits.
    const terms = termsUnder(plan, wanted)
    const askToReserve = async () =>
      route.reserve?.({ planId, terms, body, clientNetwork: network })
    const reserve = await askToReserve()
    const outcome = await orders.open(by, wanted, {
      plan,
      ...(ahead?.room ?? (await admit(purchase))),
      ...(reserve ? { reserve } : {}),
    })
    // What there was a moment ago may be gone for good. Then the product says so: to wait would be in vain.
    if (outcome.kind === 'rate limited' && outcome.retryAfterSeconds === null) await askToReserve()
    return outcome
  }

  /** Asked only where there is no order. @throws Problem if this client may not open one now. */
  async function admit({ request, reply, by }: Purchase): Promise<Room> {
    // Without a wallet protocol the quote can be paid by anybody, and whoever has the key may collect.
    const isNative = () =>
      readAttempt(request, bindingOf(request, NO_BODY), flows).protocol === 'native'
    const isSelling = () => orders.isSelling() && (by?.client !== null || !isNative())
    const isOwner = route.extendsId !== undefined
    return newOrders.admit({ request, reply }, { isOwner, isSelling })
  }
}

type Exchange = { request: FastifyRequest; reply: FastifyReply }
type Counting = Pick<Paying, 'limits' | 'clientAddress'>

/**
 * Counts a repeat or a poll of an order, unless that was done.
 * @throws Problem `rate limited`.
 */
export async function takeRepeat(
  exchange: Exchange,
  shown: { orderId: string; isProven: boolean; hasWrongPreimage: boolean; isTaken?: boolean },
  deps: Counting,
): Promise<void> {
  if (shown.hasWrongPreimage) await takeGuess(exchange, deps)
  if (shown.isTaken) return
  await deps.limits.take(LIMITS.poll, pollBucket(shown.orderId, shown.isProven), exchange.reply)
}

/** Counts a proof that proves no payment, like a wrong bearer token. @throws Problem `rate limited`. */
export const takeGuess = (
  { request, reply }: Exchange,
  { limits, clientAddress }: Counting,
): Promise<void> => limits.take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)

/**
 * The bucket of an order's polls and repeats. A client that proves the payment has a bucket of its own: a
 * stranger who has guessed the key, or has opened the order with it, must not be able to empty that one.
 */
const pollBucket = (orderId: string, isProven: boolean): string =>
  isProven ? `${orderId} proven` : orderId
