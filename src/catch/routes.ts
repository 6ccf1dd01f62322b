/** CATCH over HTTP: buying an inbox, sending to it, and what its owner does with it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../http/app.ts'
import { bearerOf, bearerToken } from '../http/bearer.ts'
import { readBody } from '../http/body.ts'
import type { ClientAddress, IsProxied } from '../http/client-address.ts'
import { type Problem, problem, unauthorized } from '../http/errors.ts'
import type { EventStream, EventStreams } from '../http/event-stream.ts'
import { type Limits, rateLimited } from '../http/limits.ts'
import { mountPaidRoute, type Paying } from '../http/paid.ts'
import { MAX_PLAN_SELECTION_BYTES, parsePlanSelection } from '../http/plan-selection.ts'
import { errors, NoContent, PlanSelection } from '../http/schemas.ts'
import type { PlanId } from '../payment/provisioning.ts'
import { bodyOf, eventJson } from './event.ts'
import { eventId } from './event-id.ts'
import {
  CatchCapability,
  CatchEvent,
  type CatchPlan,
  CatchStatus,
  EventPage,
  EventQuery,
} from './schema.ts'
import type { CatchService } from './service.ts'
import type { InboxRow } from './store.ts'

type Owned = { Params: { publicId: string } }
type OwnedEvent = { Params: { publicId: string; eventId: string } }

declare module 'fastify' {
  interface FastifyRequest {
    /** The inbox that the bearer of this request owns; set where a route asks for an owner. */
    inbox: InboxRow | null
  }
}

const ownerErrors = ['unauthorized', 'not found', 'rate limited', 'internal error'] as const
const security = [{ bearer: [] }]
/** A hint may be lost, and expiry gives none: a silent stream looks this often. */
const LOOK_AGAIN_MS = 5_000
const RETRY_STREAM_SECONDS = 10

const eventParams = Type.Object({
  publicId: Type.String(),
  eventId: Type.String({ format: 'uuid' }),
})
/** A malformed event id is simply not there. */
const anyEventId = () => () => true

const inboxParams = Type.Object({ publicId: Type.String() })

export function mountCatch(
  app: App,
  deps: Paying & {
    service: CatchService
    plans: Record<PlanId, CatchPlan>
    isProxied: IsProxied
    streams: EventStreams
  },
): void {
  const { plans } = deps
  mountPaidRoute(app, deps, {
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
  })
  mountIngest(app, deps)
  mountOwner(app, deps)
}

function mountIngest(
  app: App,
  deps: {
    service: CatchService
    clientAddress: ClientAddress
    isProxied: IsProxied
    limits: Limits
  },
): void {
  const { service, clientAddress, isProxied, limits } = deps
  app.route<Owned>({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    url: '/c/:publicId',
    schema: {
      tags: ['catch'],
      summary: 'Send a request to an inbox; sub-paths are kept',
      params: inboxParams,
      response: {
        204: NoContent,
        ...errors(
          'request too large',
          'catch unavailable',
          'request timeout',
          'rate limited',
          'internal error',
        ),
      },
    },
    // Answered before Fastify looks at the body, since it refuses a content type that is none. Here
    // the bytes of every method are read alike, whatever they are called.
    onRequest: async (request, reply) => {
      const inbox = await service.facts(request.params.publicId)
      if (!inbox) throw unavailable()
      await limits.take(`ingest.${inbox.planId}`, inbox.publicId, reply)
      const body = await readBody(request.raw, inbox.maxBytesPerRequest)
      const { path, query } = splitUrl(request.originalUrl)
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
    handler: () => {
      throw new Error('every request to an inbox is answered before')
    },
  })
}

function mountOwner(
  app: App,
  { service, limits, streams }: { service: CatchService; limits: Limits; streams: EventStreams },
): void {
  app.decorateRequest('inbox', null)

  /** Authentication comes before query and body; `unknown` is what a stranger's token gets. */
  const owner =
    (unknown: () => Problem) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { publicId } = request.params as Owned['Params']
      const token = bearerOf(request.raw, 'catch_owner')
      if (token === null) return limits.refuse(unauthorized(), request, reply)
      request.inbox = await service.owned(publicId, token)
      if (!request.inbox) return limits.refuse(unknown(), request, reply)
      await limits.take('owner', publicId, reply)
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
        response: {
          200: EventPage,
          ...errors('invalid query', 'unauthorized', 'rate limited', 'internal error'),
        },
      },
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      const page = await service.page(inbox, request.query)
      await service.used(inbox)
      return sendJson(reply, page)
    },
  )

  app.get<Owned>(
    '/api/catch/:publicId/stream',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'Events as they come (server-sent events); resumes after Last-Event-ID',
        security,
        params: inboxParams,
        headers: Type.Object({ 'last-event-id': Type.Optional(Type.String()) }),
        response: {
          200: Type.String({ description: 'text/event-stream of `capture`, then `end`' }),
          ...errors('invalid query', ...ownerErrors),
        },
      },
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      const from = lastEventId(request) ?? inbox.last_sequence
      let wake = (): void => {}
      const unlisten = service.listen(inbox.public_id, () => wake())
      if (!unlisten) throw rateLimited(RETRY_STREAM_SECONDS)
      try {
        await service.used(inbox)
        const stream = streams.open(reply)
        wake = stream.wake
        stream.mark(String(from))
        await follow(service, inbox.public_id, from, stream)
      } finally {
        unlisten()
      }
    },
  )

  app.get<OwnedEvent>(
    '/api/catch/:publicId/events/:eventId',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'One event',
        security,
        params: eventParams,
        response: { 200: CatchEvent, ...errors(...ownerErrors) },
      },
      validatorCompiler: anyEventId,
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      const found = await service.event(inbox, request.params.eventId)
      if (!found) throw notFound()
      await service.used(inbox)
      return sendJson(reply, eventJson(found))
    },
  )

  app.get<OwnedEvent>(
    '/api/catch/:publicId/events/:eventId/body',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'The raw body of one event, to download',
        security,
        params: eventParams,
        response: {
          200: Type.String({ contentEncoding: 'binary', description: 'The body, byte for byte' }),
          ...errors(...ownerErrors),
        },
      },
      validatorCompiler: anyEventId,
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      const found = await service.event(inbox, request.params.eventId)
      if (!found) throw notFound()
      await service.used(inbox)
      // A stranger's bytes, served from our origin: never shown, sniffed or run.
      return reply
        .type('application/octet-stream')
        .header('content-disposition', `attachment; filename="${eventId(found)}.bin"`)
        .header('content-security-policy', "default-src 'none'; sandbox")
        .header('cross-origin-resource-policy', 'cross-origin')
        .serializer((body: string) => body)
        .send(bodyOf(found))
    },
  )

  app.delete<OwnedEvent>(
    '/api/catch/:publicId/events/:eventId',
    {
      onRequest: owner(notFound),
      schema: {
        tags: ['catch'],
        summary: 'Delete one event for good; frees its bytes, not its count',
        security,
        params: eventParams,
        response: { 204: NoContent, ...errors(...ownerErrors) },
      },
      validatorCompiler: anyEventId,
    },
    async (request, reply) => {
      const inbox = ownedInbox(request)
      if (!(await service.deleteEvent(inbox, request.params.eventId))) throw notFound()
      await service.used(inbox)
      return reply.code(204).send()
    },
  )
}

/** JSON that is made already; in bytes, which go to the socket as they are. */
function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(Buffer.from(json))
}

/** Sends what is there, then what comes, until the inbox or the client ends. */
async function follow(
  service: CatchService,
  publicId: string,
  from: number,
  stream: EventStream,
): Promise<void> {
  let told = from
  try {
    while (stream.isOpen()) {
      const { events, ended } = await service.after(publicId, told)
      for (const event of events) {
        const id = String(event.sequence)
        if (!(await stream.send({ event: 'capture', data: eventJson(event), id }))) return
        told = event.sequence
      }
      if (ended) {
        await stream.send({ event: 'end', data: JSON.stringify({ status: ended }) })
        return
      }
      if (events.length === 0) await stream.wait(LOOK_AGAIN_MS)
    }
  } finally {
    stream.end()
  }
}

/** The sequence that a client has got to, or null where it starts with what comes. */
function lastEventId(request: FastifyRequest): number | null {
  const value = request.headers['last-event-id']
  if (value === undefined || value === '') return null
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw problem('invalid query')
}

function ownedInbox(request: FastifyRequest): InboxRow {
  if (!request.inbox) throw new Error('the route has no owner hook')
  return request.inbox
}

/** Path and query as sent, without decoding: a sender may have signed them. */
function splitUrl(url: string): { path: string; query: string } {
  const afterPrefix = url.slice('/c/'.length)
  const end = afterPrefix.search(/[/?#]/)
  const rest = end === -1 ? '' : afterPrefix.slice(end)
  const mark = rest.indexOf('?')
  return mark === -1
    ? { path: rest, query: '' }
    : { path: rest.slice(0, mark), query: rest.slice(mark + 1) }
}

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
const unavailable = (): Problem => problem('catch unavailable', { 'www-authenticate': 'Bearer' })
