/**
 * Routes of whoever has the owner token of a capability. The order is the same for all: the token,
 * its limit, the work, then the first use of the token is noted, and only then the answer goes out.
 */
import type { FastifyReply, FastifyRequest, RouteGenericInterface } from 'fastify'
import type { TokenKind } from '../lib/ids.ts'
import type { App } from './app.ts'
import { bearerOf } from './bearer.ts'
import { type Problem, problem, unauthorized } from './errors.ts'
import type { EventStream, EventStreams } from './event-stream.ts'
import { LIMITS, type Limits, rateLimited } from './limits.ts'

/** A capability has only so many streams at once; one of them may end. */
const RETRY_STREAM_SECONDS = 10

/** What an owner route may be refused with, besides what is its own. */
export const OWNER_ERRORS = ['unauthorized', 'not found', 'rate limited', 'internal error'] as const

declare module 'fastify' {
  interface FastifyRequest {
    /** What the bearer of this request owns; set where a route asks for an owner. */
    owned: unknown
  }
}

type Deps<Row> = {
  limits: Limits
  streams: EventStreams
  /** The kind of the owner token. */
  kind: TokenKind
  /** What the token owns, or null: unknown, gone or somebody else's. */
  find(publicId: string, token: string): Promise<Row | null>
  /** The token was used with success: what the sale dispensed is not repeated any more. */
  used(row: Row): Promise<void>
  /** Calls `wake` when there may be news; returns how to stop, or null where too many listen. */
  listen(publicId: string, wake: () => void): (() => void) | null
}

export type Owner<Row> = {
  /** Finds the owned before query and body are looked at. */
  required(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** The same; a token that owns nothing gets 401 like a bad one. */
  requiredOr401(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** What the route's owner owns. */
  of(request: FastifyRequest): Row
  /** Does the work; what it returns sends the answer, once the use of the token is noted. */
  answers<Route extends RouteGenericInterface = RouteGenericInterface>(
    work: (row: Row, request: FastifyRequest<Route>, reply: FastifyReply) => Promise<() => unknown>,
  ): (request: FastifyRequest<Route>, reply: FastifyReply) => Promise<unknown>
  /** Answers with a stream that is woken by news, for as long as `follow` takes. */
  streams(
    prepare: (row: Row, request: FastifyRequest) => (stream: EventStream) => Promise<void>,
  ): (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

export function createOwner<Row extends { public_id: string }>(
  app: App,
  deps: Deps<Row>,
): Owner<Row> {
  const { limits, streams, kind, find, used, listen } = deps
  if (!app.hasRequestDecorator('owned')) app.decorateRequest('owned', null)

  const requires =
    (unknown: () => Problem) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { publicId } = request.params as { publicId: string }
      const token = bearerOf(request.raw, kind)
      if (token === null) return limits.refuse(unauthorized(), request, reply)
      request.owned = await find(publicId, token)
      if (!request.owned) return limits.refuse(unknown(), request, reply)
      await limits.take(LIMITS.owner, publicId, reply)
    }

  function of(request: FastifyRequest): Row {
    if (!request.owned) throw new Error('the route has no owner hook')
    return request.owned as Row
  }

  return {
    required: requires(() => problem('not found')),
    requiredOr401: requires(unauthorized),
    of,
    answers: (work) => async (request, reply) => {
      const row = of(request as FastifyRequest)
      const send = await work(row, request, reply)
      await used(row)
      return send()
    },
    streams: (prepare) => async (request, reply) => {
      const row = of(request)
      const follow = prepare(row, request)
      let wake = (): void => {}
      const unlisten = listen(row.public_id, () => wake())
      if (!unlisten) throw rateLimited(RETRY_STREAM_SECONDS)
      try {
        await used(row)
        const stream = streams.open(reply, row.public_id)
        wake = stream.wake
        try {
          await follow(stream)
        } finally {
          stream.end()
        }
      } finally {
        unlisten()
      }
    },
  }
}
