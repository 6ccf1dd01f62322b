/**
 * Routes for the owner token of a capability. All have the same order: check the token, take from its limit,
 * do the work, note the first use of the token, and only then send the answer.
 */
import type {
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  HTTPMethods,
  RouteGenericInterface,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify'
import type { TSchema } from 'typebox'
import type { TokenKind } from '../lib/ids.ts'
import { Type } from '../lib/json-schema.ts'
import type { AnyProduct } from '../lib/product-names.ts'
import type { Phrase } from '../protocol/errors.ts'
import type { App } from './app.ts'
import { bearerOf } from './credentials.ts'
import { type Problem, problem, unauthorized } from './errors.ts'
import { LIMITS, type Limits, rateLimited } from './limits.ts'
import { BODY_ERRORS, errors } from './schemas.ts'
import { withDisconnectSignal } from './sending.ts'
import type { EventStream, EventStreams, LongPoll } from './streams.ts'

/** Retry-After when a capability has too many streams and waiting requests: one may have ended by then. */
const RETRY_STREAM_SECONDS = 10

/** The errors that every operation of an owner may answer. */
const OWNER_ERRORS = ['unauthorized', 'not found', 'rate limited', 'internal error'] as const

/** An operation of an owner, as openapi.json has it. */
export type Operation = {
  operationId: string
  summary: string
  description: string
  isInWholeOnly?: true
  /** Default: the public id. */
  params?: TSchema
  querystring?: TSchema
  headers?: TSchema
  body?: TSchema
  response: object
  /** Besides those of every owner, and of every body. */
  errors?: readonly Phrase[]
  /** Such as another hook than `required`. */
  route?: Pick<Partial<RouteOptions>, 'onRequest' | 'bodyLimit' | 'config' | 'validatorCompiler'>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The row that the bearer of this request owns. Set on routes that require an owner. */
    owned: unknown
  }
}

export type Owner<Row extends { public_id: string }> = ReturnType<typeof createOwner<Row>>

export function createOwner<Row extends { public_id: string }>(
  app: App,
  deps: {
    limits: Limits
    streams: EventStreams
    product: AnyProduct
    /** The schema of the public id in a path. */
    publicId: ReturnType<typeof Type.String>
    /** The kind of the owner token. */
    kind: TokenKind
    /** The row that the token owns; null if it is unknown or gone, or the token is not its own. */
    find(publicId: string, token: string): Promise<Row | null>
    /** Whether it can still be read, but not changed. Default: never. */
    hasEnded?(row: Row): boolean
    /** Notes that the token was used: the delivery is not repeated after that. */
    used(row: Row): Promise<void>
    /** Calls `wake` when there may be news. Returns a function that stops, or null if too many listen. */
    listen(publicId: string, wake: () => void): (() => void) | null
  },
) {
  const { limits, streams, product, publicId, kind, find, used, listen } = deps
  const { hasEnded = () => false } = deps
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

  const required = requires(() => problem('not found'))

  function of(request: FastifyRequest): Row {
    if (!request.owned) throw new Error('the route has no owner hook')
    return request.owned as Row
  }

  /** Listens for news of a row, until its answer is sent or its client has left. */
  function listenFor({ public_id: publicId }: Row, { raw: response }: FastifyReply) {
    const news = { wake: (): void => {} }
    const unlisten = listen(publicId, () => news.wake())
    if (!unlisten) throw rateLimited(RETRY_STREAM_SECONDS)
    response.once('close', unlisten)
    if (response.destroyed) unlisten()
    return news
  }

  const answers =
    <Route extends RouteGenericInterface = RouteGenericInterface>(
      work: (
        row: Row,
        request: FastifyRequest<Route>,
        reply: FastifyReply,
      ) => Promise<() => unknown>,
    ) =>
    async (request: FastifyRequest<Route>, reply: FastifyReply): Promise<unknown> => {
      const row = of(request as FastifyRequest)
      const send = await work(row, request, reply)
      await used(row)
      return send()
    }

  return {
    product,
    publicId,
    /** Mounts an operation. */
    mount<Route extends RouteGenericInterface = RouteGenericInterface>(
      [method, url]: [method: HTTPMethods, url: string],
      { route, errors: others = [], response, ...described }: Operation,
      handler: (request: FastifyRequest<Route>, reply: FastifyReply) => Promise<unknown>,
    ): void {
      const ofBody = described.body ? BODY_ERRORS : []
      const schema: FastifySchema = {
        tags: [product],
        security: [{ bearer: [] }],
        params: Type.Object({ publicId }),
        ...described,
        response: { ...response, ...errors(...others, ...ofBody, ...OWNER_ERRORS) },
      }
      app.route({
        onRequest: required,
        ...route,
        method,
        url,
        schema,
        handler: handler as RouteHandlerMethod,
      })
    },
    /** A hook that finds the owned row before query and body are read. */
    required,
    /** The same, but a token that owns nothing gets 401, like a malformed one. */
    requiredOr401: requires(unauthorized),
    /** The same as `required`, but what has ended is not found. */
    async changeable(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      await required(request, reply)
      if (hasEnded(of(request))) throw problem('not found')
    },
    /** The row that the hook has found. */
    of,
    /** Does the work. `work` returns a function that sends the answer once the use of the token is noted. */
    answers,
    /** Answers with 204 once something is gone. False: it was not there. */
    removes: <Route extends RouteGenericInterface = RouteGenericInterface>(
      work: (row: Row, request: FastifyRequest<Route>) => Promise<boolean>,
    ) =>
      answers<Route>(async (row, request, reply) => {
        if (!(await work(row, request))) throw problem('not found')
        return () => reply.code(204).send()
      }),
    /**
     * Answers when there is news, or after this time. Listens first, so that `work` misses nothing that comes
     * after it has looked.
     */
    async waits<Route extends RouteGenericInterface = RouteGenericInterface>(
      request: FastifyRequest<Route>,
      reply: FastifyReply,
      { ms, work }: { ms: number; work: (row: Row, poll: LongPoll) => Promise<() => unknown> },
    ): Promise<unknown> {
      const row = of(request as FastifyRequest)
      const news = listenFor(row, reply)
      await used(row)
      const poll = streams.longPoll(reply, ms)
      news.wake = poll.wake
      const send = await work(row, poll)
      poll.end()
      return send()
    },
    /** Answers with a stream that news wakes. It ends with the promise of the returned function. `gone`: its client has left. */
    streams:
      (
        prepare: (
          row: Row,
          request: FastifyRequest,
        ) => (stream: EventStream, gone: AbortSignal) => Promise<void>,
      ) =>
      async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
        const row = of(request)
        const follow = prepare(row, request)
        const news = listenFor(row, reply)
        await used(row)
        const stream = streams.open(reply, row.public_id)
        news.wake = stream.wake
        try {
          await withDisconnectSignal(reply.raw, (gone) => follow(stream, gone))
        } finally {
          stream.end()
        }
      },
  }
}
