/** CATCH over HTTP: buying an inbox, sending to it, and what its owner does with it. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../http/app.ts'
import { bearerToken, requireToken } from '../http/bearer.ts'
import { readBody } from '../http/body.ts'
import type { ClientAddress, IsProxied } from '../http/client-address.ts'
import { type Problem, problem, unauthorized } from '../http/errors.ts'
import { mountPaidRoute } from '../http/paid.ts'
import { MAX_PLAN_SELECTION_BYTES, parsePlanSelection } from '../http/plan-selection.ts'
import { errors, NoContent, PlanSelection } from '../http/schemas.ts'
import type { Orders } from '../payment/orders.ts'
import type { PlanId } from '../payment/provisioning.ts'
import { CatchCapability, type CatchPlan, CatchStatus, EventPage, EventQuery } from './schema.ts'
import type { CatchService } from './service.ts'
import type { InboxRow } from './store.ts'

type Owned = { Params: { publicId: string } }

declare module 'fastify' {
  interface FastifyRequest {
    /** The inbox that the bearer of this request owns; set where a route asks for an owner. */
    inbox: InboxRow | null
  }
}

const ownerErrors = ['unauthorized', 'not found', 'internal error'] as const
const security = [{ bearer: [] }]
const inboxParams = Type.Object({ publicId: Type.String() })

export function mountCatch(
  app: App,
  deps: {
    service: CatchService
    orders: Orders
    plans: Record<PlanId, CatchPlan>
    clientAddress: ClientAddress
    isProxied: IsProxied
  },
): void {
  const { service, orders, plans, clientAddress } = deps
  mountPaidRoute(
    app,
    { orders, clientAddress },
    {
      product: 'catch',
      path: '/api/payments/catch',
      summary: 'Buy a webhook inbox',
      contentType: 'application/json',
      maxBodyBytes: MAX_PLAN_SELECTION_BYTES,
      bodySchema: PlanSelection,
      headerSchemas: {},
      resourceSchema: CatchCapability,
      parse: (body) => ({ planId: parsePlanSelection(body), terms: null }),
      plan: (planId) => (plans[planId].available ? plans[planId] : null),
      memo: (planId) => `Mayfly CATCH ${planId}`,
    },
  )
  mountIngest(app, deps)
  mountOwner(app, service)
}

function mountIngest(
  app: App,
  deps: { service: CatchService; clientAddress: ClientAddress; isProxied: IsProxied },
): void {
  const { service, clientAddress, isProxied } = deps
  app.register(async (scope) => {
    // Any content type, and none: the bytes are read below, for every method alike.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.route<Owned>({
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: '/c/:publicId',
      schema: {
        tags: ['catch'],
        summary: 'Send a request to an inbox; sub-paths are kept',
        params: inboxParams,
        response: {
          204: NoContent,
          ...errors('request too large', 'catch unavailable', 'request timeout', 'internal error'),
        },
      },
      handler: async (request, reply) => {
        const inbox = await service.facts(request.params.publicId)
        if (!inbox) throw unavailable()
        const body = await readBody(request.raw, inbox.maxBytesPerRequest)
        const { path, query } = splitUrl(request.originalUrl, request.params.publicId)
        const isAccepted = await service.ingest(inbox, {
          token: bearerToken(request.raw),
          method: request.method,
          path,
          query,
          rawHeaders: request.raw.rawHeaders,
          contentType: request.headers['content-type'] ?? null,
          body,
          sourceIp: clientAddress(request.raw),
          isProxied: isProxied(request.raw),
        })
        if (!isAccepted) throw unavailable()
        return reply.code(204).send()
      },
    })
  })
}

function mountOwner(app: App, service: CatchService): void {
  app.decorateRequest('inbox', null)

  /** Authentication comes before query and body; `unknown` is what a stranger's token gets. */
  const owner =
    (unknown: () => Problem) =>
    async (request: FastifyRequest): Promise<void> => {
      const token = requireToken(request.raw, 'catch_owner')
      const { publicId } = request.params as Owned['Params']
      request.inbox = await service.owned(publicId, token)
      if (!request.inbox) throw unknown()
    }
  const notFound = (): Problem => problem('not found')

  app.get<Owned>(
    '/api/catch/:publicId',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'The state and counters of an inbox',
        security,
        params: inboxParams,
        response: { 200: CatchStatus, ...errors(...ownerErrors) },
      },
    },
    async (request) => {
      const inbox = ownedInbox(request)
      await service.used(inbox)
      return service.status(inbox)
    },
  )

  app.delete<Owned>(
    '/api/catch/:publicId',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'Destroy an inbox with its events and both capabilities',
        security,
        params: inboxParams,
        response: { 204: NoContent, ...errors(...ownerErrors) },
      },
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      await service.used(inbox)
      if (!(await service.destroy(inbox))) throw notFound()
      return reply.code(204).send()
    },
  )

  app.get<Owned & { Querystring: EventQuery }>(
    '/api/catch/:publicId/events',
    {
      onRequest: owner(unauthorized),
      config: { invalid: { query: 'invalid query' } },
      schema: {
        tags: ['catch'],
        summary: 'Events, newest first; a page may end early where bodies are large',
        security,
        params: inboxParams,
        querystring: EventQuery,
        response: { 200: EventPage, ...errors('invalid query', 'unauthorized', 'internal error') },
      },
      // The page is made of typed parts and may be large: the plain serializer is the faster one.
      serializerCompiler: () => JSON.stringify,
    },
    async (request) => {
      const inbox = ownedInbox(request)
      const page = await service.page(inbox, request.query)
      await service.used(inbox)
      return page
    },
  )

  app.delete<{ Params: { publicId: string; eventId: string } }>(
    '/api/catch/:publicId/events/:eventId',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'Delete one event for good; frees its bytes, not its count',
        security,
        params: Type.Object({ publicId: Type.String(), eventId: Type.String({ format: 'uuid' }) }),
        response: { 204: NoContent, ...errors(...ownerErrors) },
      },
      // A malformed event id is simply not there.
      validatorCompiler: () => () => true,
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      if (!(await service.deleteEvent(inbox, request.params.eventId))) throw notFound()
      await service.used(inbox)
      return reply.code(204).send()
    },
  )
}

function ownedInbox(request: FastifyRequest): InboxRow {
  if (!request.inbox) throw new Error('the route has no owner hook')
  return request.inbox
}

/** Path and query as sent, without decoding: a sender may have signed them. */
function splitUrl(url: string, publicId: string): { path: string; query: string } {
  const rest = url.slice('/c/'.length + publicId.length)
  const mark = rest.indexOf('?')
  return mark === -1
    ? { path: rest, query: '' }
    : { path: rest.slice(0, mark), query: rest.slice(mark + 1) }
}

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
const unavailable = (): Problem => problem('catch unavailable', { 'www-authenticate': 'Bearer' })
