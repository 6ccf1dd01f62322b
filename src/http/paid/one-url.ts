/**
 * Purchases of one URL, for programs that know nothing of us but an address: without a credential it
 * answers 402 with a challenge, with the right one 200. The address has a twin that shows L402 alone, because
 * stock clients expect their scheme to be the first.
 */
import type { FastifyRequest } from 'fastify'
import { isPlanId, type PlanId, type Product } from '../../lib/product-names.ts'
import type { App } from '../app.ts'
import { invalid, problem } from '../errors.ts'
import { PlanIdSchema } from '../schemas.ts'
import { inWords } from '../validation.ts'
import { oneUrlSchema } from './described.ts'
import { type Shown, selectedProtocol } from './flows.ts'
import { mountPaidRoute, type Paying } from './paid.ts'
import { type PaidRoute, refuseAnyBody } from './route.ts'

/** Its route. With `/l402` behind it, it shows L402 alone. */
export const oneUrlPath = (product: Product): string => `/api/buy/${product}/:planId`

/** For a product of which a plan says all. */
export function mountOneUrl(app: App, deps: Paying, route: PaidRoute): void {
  mount(app, deps, {
    upload: undefined,
    route: {
      ...route,
      checkHeaders: (request) => void planIn(request),
      parse(body, request) {
        refuseAnyBody(body)
        return { planId: planIn(request), terms: null }
      },
    },
  })
}

/** For a product whose orders need a body, by POST alone: a credential is bound to its bytes. */
export function mountOneUrlWithBody(app: App, deps: Paying, route: PaidRoute): void {
  mount(app, deps, { upload: route, route })
}

function mount(
  app: App,
  deps: Paying,
  { route, upload }: { route: PaidRoute; upload: PaidRoute | undefined },
): void {
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
        methods: upload ? ['POST'] : ['GET', 'HEAD', 'POST'],
        isEmpty: upload === undefined,
        target: (request) => path.replace(':planId', paramsOf(request).planId),
        shown: (request) => shownTo(request, isL402),
        describe: (method) => oneUrlSchema(route, { method, isL402, upload }),
      },
    })
  }
}

const paramsOf = (request: FastifyRequest) => request.params as { planId: string }

function planIn(request: FastifyRequest): PlanId {
  const { planId } = paramsOf(request)
  if (isPlanId(planId)) return planId
  throw invalid('invalid plan', { field: 'planId', expected: inWords(PlanIdSchema) })
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
