/**
 * Purchases of one URL, for programs that know nothing of us but an address: without a credential it
 * answers 402 with a challenge, with the right one 200. The address has a twin that shows L402 alone, because
 * stock clients expect their scheme to be the first.
 */
import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { isPlanId, type PlanId, type Product } from '../../lib/product-names.ts'
import { type Binding, EMPTY_SHA256 } from '../../payment/flows/flow.ts'
import type { OrderRequest, Outcome } from '../../payment/order.ts'
import type { App } from '../app.ts'
import { inScope, readBody, refuseEncoding } from '../body.ts'
import { clientNetwork } from '../client-address.ts'
import { checkoutUnavailable, invalid, problem } from '../errors.ts'
import { PlanIdSchema } from '../schemas.ts'
import { inWords } from '../validation.ts'
import { oneUrlSchema } from './described.ts'
import { readAttempt, type Shown, selectedProtocol, sendOutcome } from './flows.ts'
import { mountPaidRoute, type Paying } from './paid.ts'
import { takeRepeat } from './repeats.ts'
import {
  MAX_PLAN_SELECTION_BYTES,
  type OneUrlRoute,
  type PaidRoute,
  refuseAnyBody,
} from './route.ts'

const METHODS = ['GET', 'HEAD', 'POST'] as const satisfies HTTPMethods[]

/** No other purchase has a body of this hash, so none is ever the same request. */
const NO_BODY = ''

type PlanParams = { planId: string }

/** Its route. With `/l402` behind it, it shows L402 alone. */
export const oneUrlPath = (product: Product): string => `/api/buy/${product}/:planId`

export function mountOneUrl(app: App, deps: Paying, route: OneUrlRoute): void {
  const { orders, flows, clientAddress, newOrders, limits } = deps
  const path = oneUrlPath(route.product)

  inScope(app, (scope) => {
    scope.removeAllContentTypeParsers()
    // The handler reads the bytes, and whatever says nothing is accepted under any type.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const method of METHODS) {
      for (const isL402 of [false, true]) {
        scope.route<{ Params: PlanParams }>({
          method,
          url: isL402 ? `${path}/l402` : path,
          // Its plans and prices can change while the service runs.
          config: { readsBody: true, describe: () => oneUrlSchema(route, { method, isL402 }) },
          schema: oneUrlSchema(route, { method, isL402 }),
          // The handler checks the plan and the body: their errors have phrases of their own.
          validatorCompiler: () => () => true,
          handler: (request, reply) => handle({ request, reply, isL402 }),
        })
      }
    }
  })

  async function handle({
    request,
    reply,
    isL402,
  }: {
    request: FastifyRequest<{ Params: PlanParams }>
    reply: FastifyReply
    isL402: boolean
  }): Promise<FastifyReply> {
    refuseUnmeant(request)
    const { planId } = request.params
    if (!isPlanId(planId)) {
      throw invalid('invalid plan', { field: 'planId', expected: inWords(PlanIdSchema) })
    }
    if (request.method === 'POST') {
      refuseEncoding(request)
      refuseAnyBody(await readBody(request.raw, MAX_PLAN_SELECTION_BYTES))
    }
    const shown = shownTo(request, isL402)
    const binding = bindingOf(planId)
    const attempt = readAttempt(request, binding, flows)
    const rendering = { attempt, binding, flows, shown }
    const wanted = { product: route.product, planId, terms: null, bodySha256: NO_BODY }
    const ask = {
      by: null,
      request: wanted,
      credential: attempt.credential,
      isPeek: request.method === 'HEAD',
    }
    const decision = await orders.decide(ask)
    if (decision.kind === 'lost') throw problem('order not found')
    if (decision.kind === 'new') {
      return sendOutcome(reply, await open(wanted, { request, reply }), rendering)
    }
    await takeRepeat({ request, reply }, decision, deps)
    return sendOutcome(reply, await decision.act(null), rendering)
  }

  function bindingOf(planId: PlanId): Binding {
    return {
      product: route.product,
      method: 'GET',
      target: path.replace(':planId', planId),
      // Every body that is accepted says as much as none.
      bodySha256: EMPTY_SHA256,
      isOneUrl: true,
    }
  }

  async function open(
    wanted: OrderRequest,
    { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  ): Promise<Outcome> {
    const { planId } = wanted
    const plan = route.plan(planId)
    if (!plan) throw problem('invalid plan')
    // A client that retries until the node is back must not use up its limit meanwhile.
    if (!orders.isSelling()) throw checkoutUnavailable()
    await newOrders.admit(request.raw, false)
    const network = clientNetwork(clientAddress(request.raw))
    const { quote, ...open } = newOrders.limitsOf(request.raw, limits.openOrders)
    await limits.take(quote, network, reply)
    return orders.open(null, wanted, {
      ...{ plan, memo: route.memo(planId), clientNetwork: network },
      ...open,
    })
  }
}

/** The same for a product whose orders need a body, by POST alone: a credential is bound to its bytes. */
export function mountOneUrlWithBody(app: App, deps: Paying, route: PaidRoute): void {
  const path = oneUrlPath(route.product)
  for (const isL402 of [false, true]) {
    mountPaidRoute(app, deps, {
      ...route,
      path: isL402 ? `${path}/l402` : path,
      checkHeaders(request) {
        refuseUnmeant(request)
        route.checkHeaders?.(request)
      },
      oneUrl: {
        target: (request) => path.replace(':planId', (request.params as PlanParams).planId),
        shown: (request) => shownTo(request, isL402),
        describe: () => oneUrlSchema(route, { method: 'POST', isL402, upload: route }),
      },
    })
  }
}

const shownTo = (request: FastifyRequest, isL402: boolean): Shown =>
  isL402 ? 'l402' : (selectedProtocol(request) ?? 'both')

/**
 * Refuses what a browser loads without its user: ahead of time, or as a part of another site's page. A wallet
 * in the browser that pays by itself would pay for an image.
 */
function refuseUnmeant({ headers }: FastifyRequest): void {
  const isEmbedded =
    headers['sec-fetch-site'] === 'cross-site' && headers['sec-fetch-dest'] !== 'empty'
  if (headers['sec-purpose'] !== undefined || isEmbedded) {
    throw problem('cross-site request refused')
  }
}
