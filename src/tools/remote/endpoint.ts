/**
 * `POST /mcp`: the remote way in for hosts of MCP. A request is bounded and read here; the library of the protocol
 * is loaded by the first one.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../http/app.ts'
import { declaredBytes, inScope, receiveBody } from '../../http/body.ts'
import {
  type ClientAddress,
  clientNetwork,
  clientScope,
  PROXY_HEADERS,
} from '../../http/client-address.ts'
import { invalid, Problem, problem } from '../../http/errors.ts'
import { type Limits, rateLimited } from '../../http/limits.ts'
import type { Memory } from '../../http/memory.ts'
import { withDisconnectSignal } from '../../http/sending.ts'
import { lazily } from '../../lib/lazily.ts'
import { refusalOf } from '../answers.ts'
import { MAX_CIPHERTEXT_BYTES } from '../buying.ts'
import { createCalls, MCP_LIMIT, MCP_LONG_LIMIT } from './bounds.ts'
import type { Connection } from './call.ts'
import { MAX_PLAIN_BYTES, readMessage } from './message.ts'
import type { McpServerParts } from './server.ts'

const MCP_PATH = '/mcp'

/** The largest ciphertext in base64, and the rest of a message. */
const MAX_MESSAGE_BYTES = Math.ceil(MAX_CIPHERTEXT_BYTES / 3) * 4 + MAX_PLAIN_BYTES
/** Retry-After when memory or calls are used up: some have ended by then. */
const RETRY_SECONDS = 10

export type McpParts = McpServerParts & {
  clientAddress: ClientAddress
  limits: Limits
  memory: Memory
}

export function mountMcp(app: App, parts: McpParts): void {
  const { publicUrl, clientAddress, limits, memory } = parts
  const calls = createCalls()
  const server = lazily(async () => {
    const { createMcpServer } = await import('./server.ts')
    return createMcpServer(app, parts)
  })

  inScope(app, (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('application/json', (_request, _payload, done) => done(null))
    scope.post(MCP_PATH, async (request, reply) => {
      refuseForeign(request.headers, publicUrl())
      const way = wayOf(request)
      const address = clientAddress(request.raw)
      const network = clientNetwork(address)
      await limits.take(MCP_LIMIT, clientScope(address), reply)
      // In chunks, the length is known too late: such a message is a short one.
      const declared = declaredBytes(request.raw) ?? 0
      const maxBytes = declared > MAX_PLAIN_BYTES ? MAX_MESSAGE_BYTES : MAX_PLAIN_BYTES
      if (declared > MAX_PLAIN_BYTES) await limits.take(MCP_LONG_LIMIT, clientScope(address), reply)
      const end = calls.begin(network)
      if (!end) throw rateLimited(RETRY_SECONDS)
      reply.raw.once('close', end)
      if (reply.raw.destroyed) end()
      const got = await read(request, reply, { network, maxBytes }).catch(orUnread)
      if ('error' in got) return reply.code(400).send(got)
      const { message, hold } = got
      const { answer } = await server()
      return withDisconnectSignal(reply.raw, async (signal) => {
        const asked = new Request(new URL(MCP_PATH, publicUrl()), {
          method: 'POST',
          headers: textHeaders(request.headers),
          signal,
        })
        const answered = await answer(asked, message, {
          ...connectionOf(request, signal),
          way,
          hold,
        })
        return send(reply, answered)
      })
    })
  })

  async function read(
    request: FastifyRequest,
    reply: FastifyReply,
    { network, maxBytes }: { network: string; maxBytes: number },
  ): Promise<{ message: unknown; hold: Connection['hold'] }> {
    const whole = { memory, kind: 'message', network, limit: maxBytes } as const
    const { body, reservation } = await receiveBody(request, reply, whole)
    const { message, heldBytes } = readMessage(body, (bytes) => {
      if (!reservation.resize(bytes)) throw rateLimited(RETRY_SECONDS)
    })
    // It grew by more than it needed, and waits may last long.
    reservation.resize(heldBytes)
    return { message, hold: (bytes) => reservation.resize(heldBytes + bytes) }
  }
}

/** A message that cannot be read is answered as JSON-RPC has it (2.0, §5.1), in a sentence that a host shows. */
function orUnread(error: unknown) {
  if (!(error instanceof Problem) || error.status !== 400) throw error
  const { phrase, fault } = error
  const body = { error: phrase, ...(phrase === 'request too large' ? TOO_LARGE : {}), ...fault }
  const { message } = refusalOf({ status: 400, body, header: () => undefined })
  return { jsonrpc: '2.0', id: null, error: { code: -32700, message } }
}

const TOO_LARGE = {
  expected: `at most ${MAX_PLAIN_BYTES} bytes beside the ciphertextBase64 of send_whisper, which needs a Content-Length`,
}

/** The caller's connection, as the service sees it. */
function connectionOf(
  request: FastifyRequest,
  signal: AbortSignal,
): Omit<Connection, 'hold' | 'way'> {
  const lines = request.raw.headersDistinct
  return {
    peer: request.raw.socket.remoteAddress ?? '',
    forwarding: Object.fromEntries(
      [...PROXY_HEADERS, 'host'].flatMap((name) => (lines[name] ? [[name, lines[name]]] : [])),
    ),
    authorization: request.headers.authorization,
    signal,
  }
}

/** Where this connection has its tokens. A slip of the pen must not put them before the model. */
function wayOf(request: FastifyRequest): Connection['way'] {
  const { tokens } = request.query as Record<string, unknown>
  if (tokens === undefined) return 'results'
  if (tokens === 'meta') return 'meta'
  throw invalid('invalid query', { field: 'tokens', expected: 'meta, or left out' })
}

/**
 * A page of another site must not reach a service on its visitor's own machine or network (DNS rebinding), and
 * must not spend the visitor's limits. Programs send no Origin.
 */
function refuseForeign({ origin }: IncomingHttpHeaders, publicUrl: string): void {
  if (origin === undefined || origin === new URL(publicUrl).origin) return
  throw problem('foreign origin')
}

/** The headers that the library reads. It never sees a token. */
function textHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const names = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  )
}

async function send(reply: FastifyReply, answered: Response): Promise<FastifyReply> {
  // The client has gone; nobody reads this.
  if (answered.status === 499) throw problem('request timeout')
  reply.code(answered.status)
  for (const [name, value] of answered.headers) {
    if (name !== 'connection' && name !== 'content-length' && name !== 'cache-control') {
      reply.header(name, value)
    }
  }
  const isStream = answered.headers.get('content-type')?.startsWith('text/event-stream')
  if (!answered.body) return reply.send()
  if (!isStream) return reply.serializer((text: string) => text).send(await answered.text())
  // The library says that proxies must not collect the events.
  return reply.send(Readable.fromWeb(answered.body as ReadableStream<Uint8Array>))
}
