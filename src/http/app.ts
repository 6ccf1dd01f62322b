/** The HTTP server as such: limits, errors, CORS and what every answer carries. Knows no product. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { TSchema } from 'typebox'
import { StoreAway } from '../db/db.ts'
import { codeOf } from '../lib/errors.ts'
import type { ApiSurface, Root } from './api-surface.ts'
import { type Backpressure, createBackpressure } from './backpressure.ts'
import { createCors } from './cors.ts'
import { exceedsDrainLimit } from './discarded-body.ts'
import { type Phrase, Problem, problem, serviceUnavailable } from './errors.ts'
import { deferContinue, sendContinue } from './expect-continue.ts'
import { mountOpenapi } from './openapi.ts'
import { compileValidator, type InvalidPhrases } from './validation.ts'

/** Headers and request line together (RFC 6585 §5). */
const MAX_HEADER_BYTES = 32 * 1024
/** A request must have arrived whole within this time, its headers within the shorter one. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 15_000
const KEEP_ALIVE_TIMEOUT_MS = 72_000
/** A stop waits this long for what is under way: Node's own limits end with its listening. */
const STOPPING_MS = 10_000
/** JSON bodies of the API. Whatever takes more reads its body itself. */
const MAX_JSON_BYTES = 16 * 1024

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The phrases of the catalogue for what the schemas refuse. */
    invalid?: InvalidPhrases
    /** Asked every moment by machines: its requests are not logged. */
    isUnlogged?: true
    /** Reads its body by itself, and not before it is wanted. */
    readsBody?: true
    /** Its answers have no body, or an error's: none is ever large. */
    hasEmptyResponse?: true
  }
}

export type App = FastifyInstance

export type AppOptions = {
  log: Logger
  /** The address that clients use, known at the latest when the server listens. */
  publicUrl: () => string
  /** Where programs call the products. */
  surfaces?: readonly ApiSurface[]
  /** The schemas that have a name in the OpenAPI document. */
  schemas: Record<string, TSchema>
  /** Answers a person who came to an address where nothing is; false for everyone else. */
  sendNotFoundPage?: (request: FastifyRequest, reply: FastifyReply) => boolean
  /** Backpressure on every response; made here unless it is watched from elsewhere. */
  backpressure?: Backpressure
  /** Tests shorten these; the defaults are the documented ones. */
  timeouts?: { requestMs: number; headersMs: number; checkEveryMs: number }
}

export async function createApp(options: AppOptions): Promise<App> {
  const {
    log,
    sendNotFoundPage = () => false,
    surfaces = [],
    backpressure = createBackpressure(),
  } = options
  const answerCors = createCors(surfaces)
  const rawRoots = surfaces.flatMap(({ roots }) => roots).filter(({ hasRawPaths }) => hasRawPaths)
  const timeouts = options.timeouts ?? {
    requestMs: REQUEST_TIMEOUT_MS,
    headersMs: HEADERS_TIMEOUT_MS,
    checkEveryMs: 1_000,
  }
  const app: App = Fastify({
    // What is logged is logged here, with an event name and a route pattern.
    logger: false,
    bodyLimit: MAX_JSON_BYTES,
    genReqId: () => randomUUID(),
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      // Node would refuse it without a body; the hook below does it in JSON.
      requireHostHeader: false,
    },
    // An id of any length is one that nobody has.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    rewriteUrl: (request) => routedUrl(request.url ?? '/', rawRoots),
    clientErrorHandler: answerClientError,
    // A path that does not decode; no hook has seen it.
    frameworkErrors: (_error, request, reply) => {
      reply.header('x-content-type-options', 'nosniff')
      if (answerCors(request, reply) || sendNotFoundPage(request, reply)) return
      sendProblem(reply, problem('not found'))
    },
  })
  // Clients that put a type on everything must not fail to destroy what they mean to.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  // Bounded by MAX_HEADER_BYTES; Node would drop what is above a count without a word.
  app.server.maxHeadersCount = 0
  backpressure.mount(app)
  // Node closes the connections that are idle at the close; one that is busy then goes after its
  // answer, and does not hold up the end for the rest of its keep-alive time.
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
    app.server.keepAliveTimeoutBuffer = 0
    // One that has not sent anything is not idle to Node, and nothing would ever end it.
    for (const socket of backpressure.sockets()) if (socket.bytesRead === 0) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), STOPPING_MS).unref()
  })
  app.server.prependListener('request', useOriginForm)
  // Node would let any body come. Those that are read by routes themselves come when they are.
  app.server.on('checkContinue', (request, response) => {
    deferContinue(request, response)
    app.server.emit('request', request, response)
  })
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const { config, bodyLimit } = request.routeOptions
    const declared = Number(request.headers['content-length'] ?? 0)
    if (!config.readsBody && declared <= bodyLimit) sendContinue(request.raw)
    done(null, payload)
  })
  // RFC 9110 §10.1.1 lets us pass over what we do not know; Node would answer 417 without a body.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  // We are nobody's proxy. Node would hang up without a word.
  app.server.on('connect', (_request, socket) => answerClientError(new Error(), socket))
  app.setValidatorCompiler(compileValidator)
  const allowed = collectMethods(app)
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-content-type-options', 'nosniff')
    reply.header('cache-control', 'no-store')
    if (answerCors(request, reply)) return
    // RFC 9112 §3.2
    if (request.raw.httpVersion === '1.1' && hostsIn(request.raw.rawHeaders) !== 1) {
      return done(problem('invalid request body', { connection: 'close' }))
    }
    // Before the body is looked at, which would have errors of its own.
    if (request.is404) answerNotFound(request, reply)
    else done()
  })
  if (log.isLevelEnabled('debug')) {
    app.addHook('onResponse', (request, reply, done) => {
      if (request.routeOptions.config.isUnlogged) return done()
      log.debug({
        event: 'http.request',
        method: request.method,
        route: request.routeOptions.url ?? 'none',
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 10) / 10,
      })
      done()
    })
  }
  app.setErrorHandler((error, request, reply) => {
    if (ignoresBody(request) && exceedsDrainLimit(request.raw)) reply.header('connection', 'close')
    sendProblem(reply, asProblem(error, request, reply, log))
  })
  app.setNotFoundHandler(answerNotFound)
  await mountOpenapi(app, options.publicUrl, options.schemas)
  return app

  function answerNotFound(request: FastifyRequest, reply: FastifyReply): void {
    const methods = allowed(request.raw.url ?? '/')
    if (methods.length > 0) {
      sendProblem(reply, problem('method not allowed', { allow: methods.join(', ') }))
    } else if (!sendNotFoundPage(request, reply)) sendProblem(reply, problem('not found'))
  }
}

/** An inbox takes a DELETE among other methods, and keeps its body. */
function ignoresBody({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.method === 'DELETE'
}

/** Node itself keeps the first and says nothing of another. */
function hostsIn(rawHeaders: string[]): number {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && /^host$/i.test(rawHeaders[i] ?? '')) hosts++
  }
  return hosts
}

/** What was thrown, as the caller may see it. Our own bugs are logged here, once. */
function asProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Logger,
): Problem {
  if (error instanceof Problem) return error
  const invalid = request.routeOptions.config.invalid
  if (isValidationError(error)) {
    return problem(
      invalid?.[error.validationContext === 'body' ? 'body' : 'query'] ?? 'invalid query',
    )
  }
  const code = codeOf(error)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return problem('request too large', { connection: 'close' })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return problem('unsupported media type')
  if (code.startsWith('FST_ERR_CTP_')) return problem(invalid?.body ?? 'invalid request body')
  // The peer went away or was timed out; nobody reads this answer.
  if (code === 'ECONNRESET' || code === 'ABORT_ERR') return problem('request timeout')
  log.error({
    event: 'http.failed',
    requestId: request.id,
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    err: error,
  })
  reply.header('x-request-id', request.id)
  return error instanceof StoreAway ? serviceUnavailable() : problem('internal error')
}

function sendProblem(reply: FastifyReply, { phrase, status, headers }: Problem): FastifyReply {
  return reply
    .code(status)
    .headers({ 'cache-control': 'no-store', ...headers })
    .header('content-type', 'application/json; charset=utf-8')
    .serializer((body: string) => body)
    .send(JSON.stringify({ error: phrase }))
}

/** What Node's parser refuses has no request yet, so its answer is written by hand. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { phrase, line } = clientErrorAnswer(error.code)
  const body = JSON.stringify({ error: phrase })
  socket.end(
    `HTTP/1.1 ${line}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
    () => {
      // What still arrives must not complete a request that was timed out, nor fill a tunnel. Only
      // what the parser refused it goes on refusing, while its sender reads why.
      if (!error.code?.startsWith('HPE_')) socket.destroy()
    },
  )
}

function clientErrorAnswer(code: string | undefined): { phrase: Phrase; line: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { phrase: 'request too large', line: '431 Request Header Fields Too Large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { phrase: 'request timeout', line: '408 Request Timeout' }
    default:
      return { phrase: 'invalid request body', line: '400 Bad Request' }
  }
}

/** A target with scheme and host is the same request as one without (RFC 9112 §3.2.2). */
function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? ''
  if (target.startsWith('/')) return
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (path !== target) request.url = path.startsWith('/') ? path : `/${path}`
}

/** A path whose first part is spelled with escapes. Nothing of ours needs any there. */
const ENCODED_ROOT = /^\/[^/?#]*%/
const NOWHERE = '/nowhere'

/**
 * Where paths are raw, `/c/{publicId}/anything?query` is routed as `/c/{publicId}`; the URL as sent
 * stays readable.
 */
function routedUrl(url: string, rawRoots: readonly Root[]): string {
  // The router would take `/%63/` for `/c/`, past all that goes by how a path begins.
  if (ENCODED_ROOT.test(url)) return NOWHERE
  const root = rawRoots.find(({ path }) => url.startsWith(path))
  if (!root) return url
  const idAt = root.path.length
  const end = url.slice(idAt).search(/[/?#]/)
  return end === -1 ? url : url.slice(0, idAt + end)
}

/** The methods that a path takes, for `Allow`. */
function collectMethods(app: App): (url: string) => string[] {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  app.addHook('onRoute', ({ url, method }) => {
    const escaped = url.replaceAll(/[.]/g, '\\.').replaceAll(/:\w+/g, '[^/]+')
    const pattern = new RegExp(`^${escaped.replace(/\*$/, '.*')}$`)
    const route = routes.get(url) ?? { pattern, methods: new Set<string>() }
    for (const name of [method].flat()) route.methods.add(name)
    routes.set(url, route)
  })
  return (url) => {
    const path = url.split('?')[0] ?? ''
    const methods = new Set<string>()
    for (const { pattern, methods: some } of routes.values()) {
      if (pattern.test(path)) for (const method of some) methods.add(method)
    }
    return [...methods].sort()
  }
}

function isValidationError(error: unknown): error is { validationContext?: string } {
  return codeOf(error) === 'FST_ERR_VALIDATION'
}
