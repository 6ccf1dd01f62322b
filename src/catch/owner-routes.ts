/** The owner's routes of an inbox: read, follow, delete, destroy. */

import type { FastifyReply, FastifyRequest, HTTPMethods, RouteGenericInterface } from 'fastify'
import type { App } from '../http/app.ts'
import { invalid, problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import type { Memory, Reservation } from '../http/memory.ts'
import { createOwner, type Operation } from '../http/owner.ts'
import { DOWNLOAD } from '../http/response-headers.ts'
import { answer, errors, NoContent, streamed } from '../http/schemas.ts'
import { streamParts, withDisconnectSignal } from '../http/sending.ts'
import type { EventStreams, LongPoll } from '../http/streams.ts'
import { mountTokens } from '../http/token-routes.ts'
import { Type } from '../lib/json-schema.ts'
import { bodyOf, eventId, eventJson } from './event.ts'
import { checkResponse, shown } from './response.ts'
import {
  CatchEvent,
  CatchRefusals,
  CatchResponse,
  CatchResponseShown,
  CatchStatus,
  EventPage,
  EventQuery,
  publicId,
  StreamQuery,
} from './schema.ts'
import type { CatchService } from './service.ts'
import { type InboxRow, latestOf } from './store.ts'

type Owned = { Params: { publicId: string } }
type Listed = Owned & { Querystring: EventQuery }
type OwnedEvent = { Params: { publicId: string; eventId: string } }

/** For JSON that is already serialized to bytes, which Fastify must not serialize again. */
const JSON_TYPE = 'application/json; charset=utf-8'

const inboxParams = Type.Object({ publicId })
const eventParams = Type.Object({
  publicId,
  eventId: Type.String({
    format: 'uuid',
    description: 'Of the event',
    examples: ['0190c7a4-6f3e-7c1d-9b2a-5d8e7f6a4b3c'],
  }),
})
/** Accepts anything: a malformed id is answered with `not found`. */
const anything = () => () => true

/** Fits the longest body of an answer with every character escaped. */
const MAX_RESPONSE_BYTES = 32 * 1024

type Work<Params> = (
  inbox: InboxRow,
  request: FastifyRequest<Params & RouteGenericInterface>,
  reply: FastifyReply,
) => Promise<() => unknown>

export function mountOwner(
  app: App,
  {
    service,
    limits,
    streams,
    memory,
  }: { service: CatchService; limits: Limits; streams: EventStreams; memory: Memory },
): void {
  const owner = createOwner<InboxRow>(app, {
    limits,
    streams,
    product: 'catch',
    publicId,
    kind: 'catch_owner',
    find: service.owned,
    used: service.used,
    listen: service.listen,
  })
  const ofInbox = '/api/catch/:publicId'

  /** Mounts an operation on one of its events. */
  const ofEvent = (
    [method, path]: [method: HTTPMethods, path: string],
    operation: Operation,
    handler: (request: FastifyRequest<OwnedEvent>, reply: FastifyReply) => Promise<unknown>,
  ): void =>
    owner.mount<OwnedEvent>(
      [method, `${ofInbox}/events/:eventId${path}`],
      { params: eventParams, ...operation, route: { validatorCompiler: anything } },
      handler,
    )

  owner.mount(
    ['GET', ofInbox],
    {
      operationId: 'getInbox',
      summary: 'The state and counters of an inbox',
      description:
        'Reading it costs nothing. The inbox can be read in every state until it expires.',
      response: { 200: CatchStatus },
    },
    owner.answers(async (inbox) => () => service.status(inbox)),
  )
  owner.mount(
    ['DELETE', ofInbox],
    {
      operationId: 'destroyInbox',
      summary: 'Destroy an inbox with its events and both capabilities',
      description:
        'All of it is gone at once, and the address accepts nothing more. This cannot be undone, and nothing is paid back.',
      response: { 204: NoContent },
    },
    owner.removes(service.destroy),
  )
  owner.mount(
    ['GET', `${ofInbox}/refusals`],
    {
      isInWholeOnly: true,
      operationId: 'getRefusals',
      summary: 'How many requests the inbox refused, since when, and why',
      description:
        'A refused request is not kept: this is how the owner learns that a sender was turned away. Counts are a few seconds late.',
      response: { 200: CatchRefusals },
    },
    owner.answers(async (inbox) => {
      const found = await service.refusals(inbox)
      return () => found
    }),
  )
  owner.mount(
    ['GET', `${ofInbox}/response`],
    {
      isInWholeOnly: true,
      operationId: 'getResponse',
      summary: 'How the inbox answers the requests that it stores; never with the secret',
      description: 'Senders get 204 until the owner chooses something else.',
      response: { 200: CatchResponseShown },
    },
    owner.answers(
      async ({ response }) =>
        (): CatchResponseShown =>
          response === null ? { status: 204 } : JSON.parse(response),
    ),
  )
  owner.mount(
    ['DELETE', `${ofInbox}/response`],
    {
      isInWholeOnly: true,
      operationId: 'deleteResponse',
      summary: 'Answer with 204 again',
      description: 'What the owner has chosen is forgotten.',
      response: { 204: NoContent },
    },
    owner.removes((inbox) => service.respond(inbox, null)),
  )
  owner.mount<{ Body: CatchResponse }>(
    ['PUT', `${ofInbox}/response`],
    {
      isInWholeOnly: true,
      operationId: 'setResponse',
      summary:
        'Choose how the inbox answers: always the same, an echo, or the proof that a sender asks for',
      description:
        'From then on, senders get it for every request that is stored. A refused request gets its error.',
      body: CatchResponse,
      response: { 200: CatchResponseShown },
      errors: ['invalid settings'],
      route: { bodyLimit: MAX_RESPONSE_BYTES, config: { invalid: { body: 'invalid settings' } } },
    },
    owner.answers(async (inbox, request) => {
      const chosen = request.body
      checkResponse(chosen)
      if (!(await service.respond(inbox, chosen))) throw problem('not found')
      return () => shown(chosen)
    }),
  )

  const page =
    (poll?: LongPoll): Work<Listed> =>
    async (inbox, request, reply) => {
      // One that waits is like a stream: it may wait for as long as its request does.
      const reservation = memory.forAnswer(reply, inbox.public_id, { isStream: poll !== undefined })
      const { first, rest } = await withDisconnectSignal(reply.raw, async (gone) => {
        const reader = { reservation, gone, ...(poll && { poll }) }
        const page = service.page(inbox, request.query, reader)
        return { first: await page.next(), rest: page }
      })
      return () => sendPage(reply, reservation, { first, rest })
    }
  const answerPage = owner.answers(page())
  app.get<Listed>(
    `${ofInbox}/events`,
    {
      onRequest: owner.requiredOr401,
      schema: {
        tags: ['catch'],
        operationId: 'listEvents',
        summary:
          'Events, newest first, or oldest first after a sequence; a page may end early where bodies are large',
        description:
          'Pages newest first, with `nextCursor` for the next one. With `after` it follows the inbox, oldest first; with `wait` too, it answers as soon as a new request is there.',
        security: [{ bearer: [] }],
        params: inboxParams,
        querystring: EventQuery,
        response: {
          200: EventPage,
          ...errors('invalid query', 'unauthorized', 'rate limited', 'internal error'),
        },
      },
    },
    (request, reply) => {
      const { query } = request
      checkQuery(query)
      if (!query.wait) return answerPage(request, reply)
      return owner.waits(request, reply, {
        ms: query.wait * 1000,
        work: (inbox, poll) => page(poll)(inbox, request, reply),
      })
    },
  )
  mountTokens(owner, {
    noun: 'Inbox',
    kinds: ['owner', 'ingest'],
    rotate: service.rotateToken,
  })
  owner.mount(
    ['GET', `${ofInbox}/stream`],
    {
      isInWholeOnly: true,
      operationId: 'streamEvents',
      summary: 'Events as they come (server-sent events); resumes after Last-Event-ID',
      description:
        'The stream stays open. Send the id of the last event that you have as Last-Event-ID, and it goes on after it; without, it begins with the next request.',
      querystring: StreamQuery,
      headers: Type.Object({
        'last-event-id': Type.Optional(
          Type.String({
            description:
              'The sequence of the last event that the client has: the stream goes on after it',
            examples: ['17'],
          }),
        ),
      }),
      response: {
        200: streamed(
          'Events named `capture`, each with a CatchEvent as its data and its sequence as its id; then one named `end` with the status of the inbox',
          { id: '1', event: 'capture', data: '{"sequence":1}' },
        ),
      },
      errors: ['invalid query'],
    },
    owner.streams((inbox, request) => {
      const from = lastEventId(request) ?? latestOf(inbox)
      return (stream, gone) => {
        stream.mark(String(from))
        return service.follow(inbox, request.query as StreamQuery, { from, stream, gone })
      }
    }),
  )

  /** The event of a request, and the memory that is reserved for it. */
  async function found(inbox: InboxRow, request: FastifyRequest<OwnedEvent>, reply: FastifyReply) {
    const reservation = memory.forAnswer(reply, inbox.public_id)
    const event = await service.event(inbox, request.params.eventId, reservation)
    if (!event) throw problem('not found')
    return { event, reservation }
  }

  ofEvent(
    ['GET', ''],
    {
      operationId: 'getEvent',
      summary: 'One event',
      description:
        'The whole request: path, query, headers in their order, and body, as text or as base64.',
      response: { 200: CatchEvent },
    },
    owner.answers(async (inbox, request, reply) => {
      const { event, reservation } = await found(inbox, request, reply)
      await reservation.waitTurn()
      const json = Buffer.from(eventJson(event))
      reservation.resize(json.length)
      return () => reply.type(JSON_TYPE).send(json)
    }),
  )
  ofEvent(
    ['GET', '/body'],
    {
      isInWholeOnly: true,
      operationId: 'getEventBody',
      summary: 'The raw body of one event, to download',
      description:
        'The bytes as they arrived, to be checked against a signature or saved. Browsers store the answer and do not show it.',
      response: {
        200: answer(Type.String({ format: 'binary' }), {
          type: 'application/octet-stream',
          example: '{"paid":true}',
          description: 'The body, byte for byte',
          headers: DOWNLOAD,
        }),
      },
    },
    owner.answers(async (inbox, request, reply) => {
      const { event, reservation } = await found(inbox, request, reply)
      reservation.resize(event.body_bytes)
      // Bytes from a stranger on our origin: browsers must not render, sniff or run them.
      return () =>
        reply
          .type('application/octet-stream')
          .header('content-disposition', `attachment; filename="${eventId(event)}.bin"`)
          .header('content-security-policy', "default-src 'none'; sandbox")
          .header('cross-origin-resource-policy', 'cross-origin')
          .send(bodyOf(event))
    }),
  )
  ofEvent(
    ['DELETE', ''],
    {
      operationId: 'deleteEvent',
      summary: 'Delete one event for good; frees its bytes, not its count',
      description: 'Its bytes are free again. It still counts as one of the requests of the plan.',
      response: { 204: NoContent },
    },
    owner.removes((inbox, request) => service.deleteEvent(inbox, request.params.eventId)),
  )
}

/** @throws Problem for parameters that exclude each other. */
function checkQuery({ after, wait, cursor }: EventQuery): void {
  if ((after === undefined && wait === undefined) || cursor === undefined) return
  throw invalid('invalid query', { field: 'cursor', expected: 'none together with after or wait' })
}

/** The last sequence that the client received, or null if it wants only new events. */
function lastEventId(request: FastifyRequest): number | null {
  const value = request.headers['last-event-id']
  if (value === undefined || value === '') return null
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw invalid('invalid query', { field: 'Last-Event-ID', expected: 'a sequence' })
}

function sendPage(
  reply: FastifyReply,
  reservation: Reservation,
  { first, rest }: { first: IteratorResult<Buffer, Buffer>; rest: AsyncGenerator<Buffer, Buffer> },
): unknown {
  reply.type(JSON_TYPE)
  if (first.done) return reply.send(first.value)
  return streamParts(reply, reservation, { first: first.value, rest })
}
