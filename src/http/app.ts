/** The HTTP server as such: limits, errors, CORS and what every answer carries. Knows no product. */
import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { TSchema } from 'typebox'
import { collectMethods } from './allowed-methods.ts'
import type { ApiSurface } from './api-surface.ts'
import { type Backpressure, createBackpressure } from './backpressure.ts'
import { createCors } from './cors.ts'
import { exceedsDrainLimit } from './discarded-body.ts'
import { answerClientError, sendError, sendProblem } from './error-response.ts'
import { problem } from './errors.ts'
import { deferContinue, sendContinue } from './expect-continue.ts'
import { mountOpenapi } from './openapi.ts'
import { routedUrl, useOriginForm } from './request-target.ts'
import { compileValidator, type InvalidPhrases } from './validation.ts'

/** Headers and request line together (RFC 6585 §5). */
const MAX_HEADER_BYTES = 32 * 1024
/** A request must have arrived whole within this time, its headers within the shorter one. */
const DEFAULT_TIMEOUTS = { requestMs: 30_000, headersMs: 15_000, checkEveryMs: 1_000 }
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
  const { log, backpressure = createBackpressure() } = options
  const sendNotFoundPage = options.sendNotFoundPage ?? (() => false)
  const answerCors = createCors(options.surfaces ?? [])
  const app = createServer(options, (request, reply) => {
    if (!answerCors(request, reply) && !sendNotFoundPage(request, reply)) {
      sendProblem(reply, problem('not found'))
    }
  })
  backpressure.mount(app)
  closeConnectionsOnStop(app, backpressure)
  app.server.prependListener('request', useOriginForm)
  answerExpectations(app)
  // The service is no proxy. Node would hang up without an answer.
  app.server.on('connect', (_request, socket) => answerClientError(new Error(), socket))
  app.setValidatorCompiler(compileValidator)
  const allowed = collectMethods(app)
  const answerNotFound = (request: FastifyRequest, reply: FastifyReply): void => {
    const methods = allowed(request.raw.url ?? '/')
    if (methods.length > 0) {
      sendProblem(reply, problem('method not allowed', { allow: methods.join(', ') }))
    } else if (!sendNotFoundPage(request, reply)) sendProblem(reply, problem('not found'))
  }
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
  if (log.isLevelEnabled('debug')) logRequests(app, log)
  app.setErrorHandler((error, request, reply) => {
    if (ignoresBody(request) && exceedsDrainLimit(request.raw)) reply.header('connection', 'close')
    sendError(error, { request, reply, log })
  })
  app.setNotFoundHandler(answerNotFound)
  await mountOpenapi(app, options.publicUrl, options.schemas)
  return app
}

/** @param answerUndecodable answers a path that does not decode, which no hook has seen. */
function createServer(
  { surfaces = [], timeouts = DEFAULT_TIMEOUTS }: AppOptions,
  answerUndecodable: (request: FastifyRequest, reply: FastifyReply) => void,
): App {
  const rawRoots = surfaces.flatMap(({ roots }) => roots).filter(({ hasRawPaths }) => hasRawPaths)
  const app: App = Fastify({
    // Requests are logged here, with an event name and a route pattern.
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
      // Node would refuse it without a body; a hook does it in JSON.
      requireHostHeader: false,
    },
    // No id is as long as this: it is looked up, and not found.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    rewriteUrl: (request) => routedUrl(request.url ?? '/', rawRoots),
    clientErrorHandler: answerClientError,
    frameworkErrors: (_error, request, reply) => {
      reply.header('x-content-type-options', 'nosniff')
      answerUndecodable(request, reply)
    },
  })
  // Clients that send a content type with every request must be able to delete.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  // Bounded by MAX_HEADER_BYTES; above a count Node would drop headers silently.
  app.server.maxHeadersCount = 0
  return app
}

/** Node closes idle connections on a stop. The others must not delay it by their keep-alive time. */
function closeConnectionsOnStop(app: App, backpressure: Backpressure): void {
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
    app.server.keepAliveTimeoutBuffer = 0
    // A connection that has not sent anything is not idle to Node, and would never end.
    for (const socket of backpressure.sockets()) if (socket.bytesRead === 0) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), STOPPING_MS).unref()
  })
}

/** Node would ask for any body. Here a route that reads its body asks when it wants it. */
function answerExpectations(app: App): void {
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
  // RFC 9110 §10.1.1 lets a server ignore unknown expectations; Node would answer 417 without a body.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
}

function logRequests(app: App, log: Logger): void {
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

/** An inbox takes a DELETE among other methods, and keeps its body. */
function ignoresBody({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.method === 'DELETE'
}

/** How many Host headers there are: Node itself keeps the first and drops the others. */
function hostsIn(rawHeaders: string[]): number {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && /^host$/i.test(rawHeaders[i] ?? '')) hosts++
  }
  return hosts
}
