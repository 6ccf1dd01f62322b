/**
 * Puts a price on routes of your own API: `mayfly/gate`.
 *
 * ```ts
 * const gate = createGate({ url: 'https://mayfly.example', projectId, capability })
 * app.post('/render/:id', gate.express('render'), handler)                    // Express
 * app.post('/render/:id', { preParsing: gate.fastify('render') }, handler)    // Fastify
 * const paid = gate.fetch('render', (request, receipt) => new Response('…'))  // fetch-style
 * ```
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { Readable } from 'node:stream'
import { concat } from '../lib/bytes.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import { isPublicAddress, visitorNetwork } from '../protocol/ip-address.ts'
import { createGatekeeper, type GateOptions } from './gatekeeper.ts'
import { hasLeft, type NodeResponse, runHandler, watchResponse } from './outcome.ts'
import type { Refused } from './visit.ts'

export type { GateReceipt } from '../protocol/gate-receipt.ts'
export { fileStore } from './file-store.ts'
export type { GateOptions } from './gatekeeper.ts'
export { memoryStore, type ReplayStore } from './replay-store.ts'

/** The longest body of a paid request, which is the service's own limit. */
const MAX_BODY_BYTES = 1024 * 1024
const MAX_DRAINED_BYTES = 4 * MAX_BODY_BYTES

export type FetchHandler = (request: Request, receipt: GateReceipt) => Response | Promise<Response>

type NodeRequest = IncomingMessage | Http2ServerRequest

/** `originalUrl` has the whole path. Express routers remove their prefix from `url`. */
export type ExpressRequest = IncomingMessage & { originalUrl?: string; body?: unknown }

/** The part of Fastify's reply that the middleware uses. */
export type FastifyReplyLike = {
  raw: NodeResponse
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body: string): unknown
}

export type Gate = {
  /** Wraps a handler that takes a Request and returns a Response. */
  fetch(route: string, handler: FetchHandler): (request: Request) => Promise<Response>
  /**
   * An Express middleware. Mount it before any body parser: the handler finds the exact bytes of
   * the body in `request.body`.
   */
  express(
    route: string,
  ): (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => void
  /** A `preParsing` hook of Fastify. The body is parsed afterwards as usual. */
  fastify(
    route: string,
  ): (request: { raw: NodeRequest }, reply: FastifyReplyLike, payload: Readable) => Promise<unknown>
  /** The receipt that admitted a request. Takes Node's request (in Fastify, `request.raw`). */
  receiptOf(request: object): GateReceipt | null
}

export function createGate(options: GateOptions): Gate {
  const gatekeeper = createGatekeeper(options)
  const receipts = new WeakMap<object, GateReceipt>()

  return {
    fetch: (route, handler) => (request) => answerFetch(route, handler, request),

    express: (route) => (request, response, next) => {
      unreadBody(request)
        .then((payload) => enter({ request, response, route, payload }))
        .then((entered) => {
          if (entered.kind === 'admitted') {
            // `_body` tells body-parser that the body was read.
            Object.assign(request, { body: Buffer.from(entered.body), _body: true })
            return next()
          }
          response.statusCode = entered.status
          setHeaders(response, entered.headers)
          response.end(entered.body)
        })
        .catch(next)
    },

    fastify: (route) => async (request, reply, payload) => {
      const entered = await enter({ request: request.raw, response: reply.raw, route, payload })
      if (entered.kind === 'admitted') return asStream(entered.body)
      reply.code(entered.status)
      reply.headers(entered.headers)
      return reply.send(entered.body)
    },

    receiptOf: (request) => receipts.get(request) ?? null,
  }

  async function enter({
    request,
    response,
    route,
    payload,
  }: {
    request: NodeRequest & { originalUrl?: string }
    response: NodeResponse
    route: string
    payload: AsyncIterable<Uint8Array>
  }): Promise<{ kind: 'admitted'; body: Uint8Array } | Refused> {
    const body = await readBody(payload)
    if (body === null) return TOO_LARGE
    const decision = await gatekeeper.decide({
      route,
      method: request.method ?? '',
      path: request.originalUrl ?? request.url ?? '',
      body,
      network: networkOf(request, request.socket.remoteAddress),
      header: (name) => headerOf(request, name),
      isGone: () => hasLeft(response),
    })
    if (decision.kind === 'refused') return decision
    receipts.set(request, decision.receipt)
    setHeaders(response, decision.headers)
    watchResponse(response, decision)
    return { kind: 'admitted', body }
  }

  async function answerFetch(
    route: string,
    handler: FetchHandler,
    request: Request,
  ): Promise<Response> {
    const body = await readBody(request.body ?? [])
    if (body === null) return refused(TOO_LARGE)
    const { pathname, search } = new URL(request.url)
    const decision = await gatekeeper.decide({
      route,
      method: request.method,
      path: pathname + search,
      body,
      network: networkOf(request),
      header: (name) => request.headers.get(name),
      isGone: () => request.signal.aborted,
    })
    if (decision.kind === 'refused') return refused(decision)
    const again = new Request(request.url, {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
      ...(body.length > 0 ? { body } : {}),
    })
    return runHandler(() => handler(again, decision.receipt), request, decision)
  }

  /** The network by which the service limits new intents. Null for a private peer, such as a proxy. */
  function networkOf(request: object, peer = ''): string | null {
    if (options.visitorAddress) return visitorNetwork(options.visitorAddress(request) ?? '')
    const address = peer.replace(/^::ffff:(?=\d+\.)/i, '')
    return isPublicAddress(address) ? visitorNetwork(address) : null
  }
}

const TOO_LARGE: Refused = {
  kind: 'refused',
  status: 413,
  headers: { 'content-type': 'application/json', connection: 'close' },
  body: '{"error":"request too large"}',
}

const refused = ({ status, headers, body }: Refused): Response =>
  new Response(body, { status, headers })

/** Every line of a header: Node's `headers` drop the second one of some. */
function headerOf({ rawHeaders }: NodeRequest, name: string): string | null {
  const isNamed = (i: number): boolean => rawHeaders[i]?.toLowerCase() === name
  const lines = rawHeaders.filter((_, i) => i % 2 === 1 && isNamed(i - 1))
  return lines.length > 0 ? lines.join(', ') : null
}

function setHeaders(response: NodeResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

/** The unread body of a request, or the bytes that `express.raw()` has read. */
async function unreadBody(request: ExpressRequest): Promise<AsyncIterable<Uint8Array>> {
  if (request.body instanceof Uint8Array) return Readable.from([request.body])
  // Otherwise the payment would be bound to an empty body, and any body would be admitted.
  if (request.readableDidRead) throw new Error('mount gate.express() before any body parser')
  return request
}

/** The exact bytes, or null if they exceed the service's limit. */
async function readBody(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    length += chunk.length
    if (length <= MAX_BODY_BYTES) chunks.push(chunk)
    // Reads on for a while, so that the client gets to read the answer.
    else if (length > MAX_DRAINED_BYTES) return null
  }
  return length <= MAX_BODY_BYTES ? concat(...chunks) : null
}

/** A stream that replaces the request for parsers. Fastify compares its length with the header. */
function asStream(body: Uint8Array): Readable & { receivedEncodedLength: number } {
  const stream = Readable.from(body.length > 0 ? [Buffer.from(body)] : [])
  return Object.assign(stream, { receivedEncodedLength: body.length })
}
