/** The HTTP server: limits, errors, CORS and the headers of every answer. Knows no product. */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { ServiceClock } from '../db/clock.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { boundRest, parseStrictJson } from './body.ts'
import { invalid, problem } from './errors.ts'
import { sliceAnswers } from './sending.ts'
import { type Connections, createConnections } from './server/connections.ts'
import { type ApiSurface, createCors } from './server/cors.ts'
import { answerClientError, sendError, sendProblem } from './server/error-response.ts'
import { collectMethods, faultOfFraming, routedUrl, useOriginForm } from './server/requests.ts'
import { COMPILERS, type InvalidPhrases } from './validation.ts'

/** Headers and request line together (RFC 6585 §5). */
const MAX_HEADER_BYTES = 32 * 1024
/**
 * A whole request must arrive within `requestMs`, and its headers within `headersMs`. In `stalledMs` something must be
 * received or sent; the whole time of an answer is not limited.
 */
const DEFAULT_TIMEOUTS = {
  requestMs: 30_000,
  headersMs: 15_000,
  checkEveryMs: 1_000,
  stalledMs: 60_000,
}
const KEEP_ALIVE_TIMEOUT_MS = 72_000
/** A stop waits this long for requests under way: Node's own timeouts end when it stops listening. */
const STOPPING_MS = 10_000
/** The limit of the API's JSON bodies, unless a route has its own. */
const MAX_JSON_BYTES = 16 * 1024

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The phrases of the catalogue for bodies that are refused. Default: `invalid request body`. */
    invalid?: InvalidPhrases
    /** Its requests are not logged, because machines send them all the time. */
    isUnlogged?: true
    /** Its schema as it is now, for the OpenAPI document, where that can change after the start. */
    describe?: () => FastifySchema
    /** It is mounted to answer 405 where the pattern of another route would fit. */
    isRefused?: true
    /** Its answers have no body or a short one, so they are never large. */
    hasEmptyResponse?: true
  }
}

export type App = FastifyInstance

export type AppOptions = {
  log: Logger
  /** The paths and headers of the products. */
  surfaces?: readonly ApiSurface[]
  /** Shows a person that nothing is at this address; false if a program asks. */
  sendNotFoundPage?: (request: FastifyRequest, reply: FastifyReply) => boolean
  /** The service's clock, which the `Date` header tells. */
  clock?: Pick<ServiceClock, 'now' | 'hasParted' | 'beat'>
  /** Made here by default. */
  connections?: Connections
  /** Tests shorten these; the defaults are the documented ones. */
  timeouts?: Partial<typeof DEFAULT_TIMEOUTS>
}

export async function createApp(options: AppOptions): Promise<App> {
  const { log, connections = createConnections(), clock = MACHINE } = options
  const sendNotFoundPage = options.sendNotFoundPage ?? (() => false)
  const answerCors = createCors(options.surfaces ?? [])
  const date = createDate(clock)
  const onClientError = answerClientError(date)
  const app = createServer(options, onClientError)
  connections.mount(app)
  sliceAnswers(app)
  closeConnectionsOnStop(app, connections)
  app.server.prependListener('request', useOriginForm)
  // RFC 9110 §10.1.1 lets a server ignore unknown expectations; Node would answer 417 without a body.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  // The service is not a proxy. By default, Node closes the connection without an answer.
  app.server.on('connect', (_request, socket) => onClientError(new Error(), socket))
  const allowed = collectMethods(app)
  const answerNotFound = (request: FastifyRequest, reply: FastifyReply): void => {
    const methods = allowed(request.raw.url ?? '/')
    if (methods.length > 0) {
      sendProblem(reply, problem('method not allowed', { allow: methods.join(', ') }))
    } else if (!sendNotFoundPage(request, reply)) sendProblem(reply, problem('not found'))
  }
  // Before the next answer, the time is read again if the machine slept or its clock was set.
  app.addHook('onRequest', (_request, _reply, done) => {
    if (!clock.hasParted()) done()
    // If the store is away, so is what could be answered wrongly.
    else
      clock.beat().then(
        () => done(),
        () => done(),
      )
  })
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('date', date())
    reply.header('x-content-type-options', 'nosniff')
    reply.header('cache-control', 'no-store')
    if (answerCors(request, reply)) return
    const fault = faultOfFraming(request.raw)
    if (fault) {
      reply.header('connection', 'close')
      return done(invalid('invalid request body', fault))
    }
    // Before the body is read, which could cause other errors.
    if (request.is404) answerNotFound(request, reply)
    else done()
  })
  // The time of the answer. What was set before is that of answers that no hook sees, such as streams.
  // biome-ignore lint/complexity/useMaxParams: Fastify calls it.
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    reply.header('date', date())
    if (!raw.complete) boundRest(raw)
    done(null, payload)
  })
  if (log.isLevelEnabled('debug')) logRequests(app, log)
  app.setErrorHandler((error, request, reply) => sendError(error, { request, reply, log }))
  app.setNotFoundHandler(answerNotFound)
  return app
}

const MACHINE = { ...systemClock, hasParted: () => false, beat: async () => undefined }

/** The value of `Date`, made once a second. */
function createDate({ now }: Clock): () => string {
  let madeAt = Number.NaN
  let text = ''
  return () => {
    const second = Math.floor(now() / 1000)
    if (second !== madeAt) text = new Date(second * 1000).toUTCString()
    madeAt = second
    return text
  }
}

function createServer(
  { surfaces = [], ...options }: AppOptions,
  clientErrorHandler: ReturnType<typeof answerClientError>,
): App {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const rawRoots = surfaces.flatMap(({ roots }) => roots).filter(({ hasRawPaths }) => hasRawPaths)
  const app: App = Fastify({
    schemaController: COMPILERS,
    // Requests are logged here, with an event name and a route pattern.
    logger: false,
    bodyLimit: MAX_JSON_BYTES,
    // An error that is logged gets an id. Making one for each request would cost every ingest.
    genReqId: () => '',
    requestTimeout: timeouts.requestMs,
    connectionTimeout: timeouts.stalledMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    exposeHeadRoutes: false,
    // Nothing that is mounted waits for anything, so that a timer for each route would only cost.
    pluginTimeout: 0,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      // A hook refuses a missing Host header in JSON. Node would do it without a body.
      requireHostHeader: false,
    },
    // Longer than any id, so that an id of any length is looked up and not found.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    // The router can read each of these, so that the hooks run for every request.
    rewriteUrl: (request) => routedUrl(request.url ?? '/', rawRoots),
    clientErrorHandler,
  })
  parseStrictJson(app)
  // Clients that send a content type with every request must be able to delete.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  // MAX_HEADER_BYTES bounds the headers. With a maximum count, Node would drop some silently.
  app.server.maxHeadersCount = 0
  return app
}

/** On a stop, Node closes idle connections only. The others must not delay it by their keep-alive time. */
function closeConnectionsOnStop(app: App, connections: Connections): void {
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
    app.server.keepAliveTimeoutBuffer = 0
    // Node does not count a connection that has sent nothing as idle, so it would never end.
    for (const socket of connections.sockets()) if (socket.bytesRead === 0) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), STOPPING_MS).unref()
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
