/**
 * `POST /mcp`: the remote way in for hosts of MCP. A request is bounded and read here; the library of the protocol
 * is loaded by the first one.
 */
import type { IncomingHttpHeaders } from 'node:http'
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
import { LIMITS, type Limits, rateLimited } from '../../http/limits.ts'
import type { BodyReservation, Memory } from '../../http/memory.ts'
import { withDisconnectSignal } from '../../http/sending.ts'
import { isObject, MAX_JSON, parseStrictJsonBytes, signsOfJson } from '../../lib/json.ts'
import { lazily } from '../../lib/lazily.ts'
import { refusalOf } from '../answers.ts'
import type { Caller } from './own-requests.ts'
import type { McpServerParts, RemoteWay } from './server.ts'

const MCP_PATH = '/mcp'

/**
 * The requests under way, of which a wait is one. Each holds a connection, a server of the protocol and its result, and
 * many agents run behind the addresses of one host.
 */
const PER_NETWORK = 64
const IN_ALL = 512

/** The largest message, with room for the longest ciphertext. Hosts send about 4 KiB. */
const MAX_MESSAGE_BYTES = 64 * 1024
/** What a parser makes of a sign: the largest part of a value that has no text. */
const BYTES_OF_SIGN = 100
/** Many wait at once, and for long, each with its message. */
const MAX_WAIT_BYTES = 32 * 1024

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
      await limits.take(LIMITS.mcp, clientScope(address), reply)
      const isLong = (declaredBytes(request.raw) ?? 0) > MAX_MESSAGE_BYTES
      if (isLong) await limits.take(LIMITS.mcpLong, clientScope(address), reply)
      const end = calls.begin(network)
      if (!end) throw rateLimited(RETRY_SECONDS)
      reply.raw.once('close', end)
      if (reply.raw.destroyed) end()
      const got = await read(request, reply, network).catch(orUnread)
      if ('error' in got) return reply.code(400).send(got)
      const answer = await server()
      return withDisconnectSignal(reply.raw, async (signal) => {
        const asked = new Request(new URL(MCP_PATH, publicUrl()), {
          method: 'POST',
          headers: textHeaders(request.headers),
          signal,
        })
        const message = { ...got, way, caller: callerOf(request, signal) }
        return send(reply, await answer(asked, message))
      })
    })
  })

  async function read(
    request: FastifyRequest,
    reply: FastifyReply,
    network: string,
  ): Promise<{ message: unknown }> {
    const whole = { memory, kind: 'message', network, limit: MAX_MESSAGE_BYTES } as const
    const { body, reservation } = await receiveBody(request, reply, whole)
    return { message: readMessage(body, reservation) }
  }
}

export function createCalls() {
  const counts = new Map<string, number>()
  let all = 0

  return {
    /** Counts a request until the returned function is called; null if too many are under way. */
    begin(network: string): (() => void) | null {
      const count = counts.get(network) ?? 0
      if (count >= PER_NETWORK || all >= IN_ALL) return null
      counts.set(network, count + 1)
      all++
      let hasEnded = false
      return () => {
        if (hasEnded) return
        hasEnded = true
        all--
        const left = (counts.get(network) ?? 1) - 1
        if (left > 0) counts.set(network, left)
        else counts.delete(network)
      }
    },
  }
}

/** @throws Problem for a message that costs more than one needs. */
function readMessage(body: Uint8Array, { resize }: BodyReservation): unknown {
  const signs = signsOfJson(body)
  if (signs === null) {
    throw invalid('invalid request body', {
      expected: `at most ${MAX_JSON.signs} of { } [ ] , : outside of strings, and ${MAX_JSON.depth} levels`,
    })
  }
  const heldBytes = body.length + BYTES_OF_SIGN * signs
  if (!resize(heldBytes)) throw rateLimited(RETRY_SECONDS)
  const message = parseStrictJsonBytes(body)
  // A batch, which one old revision had, would multiply what one request may do.
  if (message === undefined || Array.isArray(message)) {
    throw invalid('invalid request body', {
      expected: 'one message of JSON-RPC, as JSON in UTF-8 with each member once',
    })
  }
  const params = isObject(message) ? message.params : undefined
  const name = isObject(params) ? params.name : undefined
  if (heldBytes > MAX_WAIT_BYTES && name === 'wait_for_webhook') {
    throw invalid('request too large', {
      expected: `at most ${MAX_WAIT_BYTES} bytes for a call that waits, with ${BYTES_OF_SIGN} for each of { } [ ] , :`,
    })
  }
  return message
}

/** A message that cannot be read is answered as JSON-RPC has it (2.0, §5.1), in a sentence that a host shows. */
function orUnread(error: unknown) {
  if (!(error instanceof Problem) || error.status !== 400) throw error
  const { phrase, fault } = error
  const expected = `at most ${MAX_MESSAGE_BYTES} bytes`
  const body = { error: phrase, ...(phrase === 'request too large' && { expected }), ...fault }
  const { message } = refusalOf({ status: 400, body, header: () => undefined })
  return { jsonrpc: '2.0', id: null, error: { code: -32700, message } }
}

/** The caller, as the service sees it. */
function callerOf(request: FastifyRequest, signal: AbortSignal): Caller {
  const lines = request.raw.headersDistinct
  return {
    signal,
    peer: request.raw.socket.remoteAddress ?? '',
    forwarding: Object.fromEntries(
      [...PROXY_HEADERS, 'host'].flatMap((name) => (lines[name] ? [[name, lines[name]]] : [])),
    ),
  }
}

/** Where this connection has its tokens. A slip of the pen must not put them before the model. */
function wayOf(request: FastifyRequest): RemoteWay {
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

/** @throws Problem if the client has gone, so that nobody reads this. */
function send(reply: FastifyReply, answered: Response): FastifyReply {
  if (answered.status === 499) throw problem('request timeout')
  // The server says these itself.
  for (const name of ['connection', 'content-length', 'cache-control'])
    answered.headers.delete(name)
  return reply.send(answered)
}
