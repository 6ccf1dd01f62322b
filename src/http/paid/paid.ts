/**
 * Makes a route paid. The request is checked completely before an invoice exists; then the order of its
 * Idempotency-Key is repeated, or a new one is opened.
 */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Binding } from '../../payment/flows/flow.ts'
import { extensionRoute, type KeyedBy, purchaseRoute } from '../../payment/keys.ts'
import { type OrderRequest, termsUnder } from '../../payment/order.ts'
import type { LookedAhead, Orders } from '../../payment/orders.ts'
import type { App } from '../app.ts'
import { inScope, refuseEncoding } from '../body.ts'
import { type ClientAddress, clientNetwork, type OpeningClient } from '../client-address.ts'
import { idempotencyKey, invalidKey } from '../credentials.ts'
import { checkoutUnavailable, problem } from '../errors.ts'
import type { Limit, Limits } from '../limits.ts'
import type { Memory } from '../memory.ts'
import { paidRouteSchema } from './described.ts'
import { type Flows, readAttempt, sendOutcome } from './flows.ts'
import type { NewOrders } from './new-orders.ts'
import { type Expected, receive, type Take } from './receiving.ts'
import { preimageIn, takeRepeat } from './repeats.ts'
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

/** One request to a paid route, on its way through the steps. */
type PaidRequest = {
  request: FastifyRequest
  reply: FastifyReply
  clientNetwork: string
  isSelling: () => boolean
  /** @throws Problem if the operator's rules let this client open no order now. */
  admit: () => Promise<void>
  take: Take
  /** What was read before the body. Null if the body is so small that nothing was asked. */
  ahead: LookedAhead | null
}

export function mountPaidRoute(app: App, deps: Paying, route: PaidRoute): void {
  const { orders, flows, clientAddress, openingClient, isOwnKey, limits, memory } = deps
  const { newOrders } = deps

  inScope(app, (scope) => {
    scope.removeAllContentTypeParsers()
    // The handler reads the bytes, once the headers are right.
    const type = route.oneUrl ? '*' : route.contentType
    scope.addContentTypeParser(type, (_request, _payload, done) => done(null))
    const describe = route.oneUrl?.describe
    scope.post(
      route.path,
      {
        config: { readsBody: true, ...(describe ? { describe } : {}) },
        schema: describe?.() ?? paidRouteSchema(route),
        // The order is bound to the bytes of the body, so the handler parses those.
        validatorCompiler: () => () => true,
      },
      handle,
    )
  })

  // The pattern of the poll would take the product for the id of an order.
  if (!route.oneUrl) {
    app.get(route.path, { config: { isRefused: true } }, async () => {
      throw problem('method not allowed', { allow: 'POST' })
    })
  }

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const by = route.oneUrl ? null : keyedBy(request)
    refuseEncoding(request)
    route.checkHeaders?.(request)
    const context: PaidRequest = {
      request,
      reply,
      clientNetwork: clientNetwork(clientAddress(request.raw)),
      isSelling: () => orders.isSelling() && (by?.client !== null || !isNative(request)),
      admit: once(() => newOrders.admit(request.raw, route.extendsId !== undefined)),
      take: onceEach((limit, bucket) => limits.take(limit, bucket, reply)),
      ahead: null,
    }
    const body = await receiveBody(context, by)
    const { planId, terms } = route.parse(body, request)
    const binding = bindingOf(request, hash('sha256', body, 'hex'))
    const attempt = readAttempt(request, binding, flows)
    const wanted: OrderRequest = {
      ...{ product: route.product, planId, terms, bodySha256: binding.bodySha256 },
      ...(route.extendsId ? { extendsId: route.extendsId(request) } : {}),
    }
    const shown = route.oneUrl?.shown(request)
    const rendering = { attempt, binding, flows, ...(shown ? { shown } : {}) }
    const preimage = preimageIn(request)
    const ask = { by, request: wanted, credential: attempt.credential, preimage }
    const decision = await orders.decide(ask, context.ahead)
    // A client that has proven a payment to us is never asked to pay.
    if (decision.kind === 'lost') throw problem('order not found')
    if (decision.kind === 'new') {
      const outcome = await openOrder(context, by, { wanted, body })
      return sendOutcome(reply, outcome, rendering)
    }
    const { take } = context
    await takeRepeat({ request, reply }, decision, { limits, clientAddress, take })
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

  /** Without a wallet protocol the quote can be paid by anybody, and whoever has the key may collect. */
  const isNative = (request: FastifyRequest): boolean =>
    readAttempt(request, bindingOf(request, NO_BODY), flows).protocol === 'native'

  function receiveBody(context: PaidRequest, by: KeyedBy | null): Promise<Buffer> {
    const { request, reply, ahead: _, ...rest } = context
    return receive(request.raw, reply.raw, {
      ...rest,
      memory,
      maxBodyBytes: route.maxBodyBytes,
      hasOwnLimit: route.bodyBytesUnder !== undefined,
      ...(route.tooLarge ? { tooLarge: route.tooLarge } : {}),
      quote: newOrders.limitsOf(request.raw, null).quote,
      expected: async () => {
        const { credential } = readAttempt(request, bindingOf(request, NO_BODY), flows)
        context.ahead = await orders.lookAhead({ by, credential, preimage: preimageIn(request) })
        return expected(context.ahead)
      },
    })
  }

  /** What is known of the order before the body arrives, and how large the body may be. */
  function expected({ orderId, plan, isProven }: LookedAhead): Expected {
    const { maxBodyBytes, bodyBytesUnder } = route
    return {
      orderId,
      isProven,
      // An order keeps the plan that it was sold with, whatever is on sale now.
      maxBodyBytes: Math.max(maxBodyBytes, plan ? (bodyBytesUnder?.(plan) ?? 0) : 0),
    }
  }

  function bindingOf(request: FastifyRequest, bodySha256: string): Binding {
    return {
      product: route.product,
      method: request.method,
      target: route.oneUrl?.target(request) ?? request.originalUrl,
      bodySha256,
      ...(route.oneUrl ? { isOneUrl: true } : {}),
    }
  }

  /** The live catalogue, the node, the operator's rules and the limits on new orders count only here. */
  async function openOrder(
    { request, reply, clientNetwork, isSelling, admit, take }: PaidRequest,
    by: KeyedBy | null,
    { wanted, body }: { wanted: OrderRequest; body: Buffer },
  ) {
    const { planId } = wanted
    const plan = route.plan(planId)
    if (!plan) throw problem('invalid plan')
    await route.admit?.({ planId, plan, request, reply })
    // An invalid request takes nothing from the limits.
    const terms = termsUnder(plan, wanted)
    const askToReserve = async () => route.reserve?.({ planId, terms, body, clientNetwork })
    const reserve = await askToReserve()
    // A client that retries until the node is back must not use up its limit meanwhile.
    await admit()
    if (!isSelling()) throw checkoutUnavailable()
    const { quote, ...open } = newOrders.limitsOf(request.raw, limits.openOrders)
    await take(quote, clientNetwork)
    const outcome = await orders.open(by, wanted, {
      plan,
      memo: route.memo(planId),
      clientNetwork,
      ...open,
      ...(reserve ? { reserve } : {}),
    })
    // What there was a moment ago may be gone for good. Then the product says so: to wait would be in vain.
    if (outcome.kind === 'rate limited' && outcome.retryAfterSeconds === null) await askToReserve()
    return outcome
  }
}

/** Asks once, although the answer may be needed before the body is read and again after it. */
function once(ask: () => Promise<void>): () => Promise<void> {
  let asked: Promise<void> | undefined
  return () => {
    asked ??= ask()
    return asked
  }
}

/** Counts a request once, although a limit may be asked before the body is read and again after it. */
function onceEach(take: Take): Take {
  const taken = new Set<string>()
  return async (limit: Limit, bucket: string) => {
    const name = `${limit.name} ${bucket}`
    if (taken.has(name)) return
    taken.add(name)
    await take(limit, bucket)
  }
}
