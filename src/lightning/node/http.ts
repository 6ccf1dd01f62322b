/** HTTP to a Lightning node: bounded in time and size. Every failure is a `NodeError`. */
import { type Dispatcher, Pool } from 'undici'
import { unlessAborted } from '../../lib/abort.ts'
import { boundedBytes } from '../../lib/bytes.ts'
import { quotable } from '../../lib/quotable.ts'
import { type NodeAnswer, NodeError, transportError } from './error.ts'
import { type Fields, jsonOf } from './json-fields.ts'

export type NodeRequest = {
  /** What the call does, for error messages: `looking up an invoice`. */
  what: string
  method: 'GET' | 'POST'
  path: string
  json?: unknown
  form?: Record<string, string>
  timeoutMs: number
  /** Ends the call early. */
  signal?: AbortSignal
}

export type NodeResponse = { status: number; text: string }

/** Longer than any answer. A settled invoice of LND lists at most 483 HTLCs of 2.5 kB each. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

// With more connections, LND does not make more invoices per second.
const MAX_CONNECTIONS = 32

export function createNodeHttp(options: {
  /** The node's name in errors. */
  node: string
  baseUrl: string
  headers: Record<string, string>
  /** The PEM of the certificate that the node's must chain to. Default: the system's roots. */
  certificate: string | undefined
  connectTimeoutMs: number
  /** The code and the message of a refusal by the node itself; null for what a proxy or another server says. */
  answerOf(response: NodeResponse): NodeAnswer | null
}) {
  const { node } = options
  const read = jsonOf(node)
  const pool = new Pool(options.baseUrl, {
    connections: MAX_CONNECTIONS,
    // HTTP/1.1 has one request per connection, so a request that hangs delays no other.
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: {
      timeout: options.connectTimeoutMs,
      // The kernel asks a silent connection for a sign of life.
      keepAliveInitialDelay: 30_000,
      ca: options.certificate,
    },
  })

  /** The answer, with any status. `timeoutMs` includes connecting and reading the last byte. */
  async function exchange(request: NodeRequest): Promise<NodeResponse> {
    const limit = AbortSignal.timeout(request.timeoutMs)
    const signal = request.signal ? AbortSignal.any([limit, request.signal]) : limit
    try {
      const work = pool.request({ ...dispatchOptions(request), signal }).then(async (response) => ({
        status: response.statusCode,
        text: await boundedText(node, response.body),
      }))
      // undici ignores the signal until the request has a connection, which may take long.
      return await unlessAborted(signal, work)
    } catch (error) {
      throw transportError(node, request.what, error)
    }
  }

  /** Opens an endless answer, until `signal` aborts: its status, and its body as it arrives. */
  async function open(
    request: Omit<NodeRequest, 'timeoutMs' | 'signal'> & { signal: AbortSignal },
  ): Promise<{ status: number; body: AsyncIterable<Buffer>; text(): Promise<string> }> {
    const response = await unlessAborted(
      request.signal,
      // LND sends its headers with the first event, which may come hours later.
      pool.request({
        ...dispatchOptions(request),
        signal: request.signal,
        headersTimeout: 0,
        bodyTimeout: 0,
      }),
    )
    return {
      status: response.statusCode,
      body: response.body,
      text: () => boundedText(node, response.body),
    }
  }

  function dispatchOptions(request: Omit<NodeRequest, 'timeoutMs'>): Dispatcher.RequestOptions {
    const { method, path, json, form } = request
    const { headers } = options
    if (json !== undefined) {
      const body = JSON.stringify(json)
      return { method, path, headers: { ...headers, 'content-type': 'application/json' }, body }
    }
    if (form === undefined) return { method, path, headers, body: null }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return {
      method,
      path,
      headers: { ...headers, ...type },
      body: new URLSearchParams(form).toString(),
    }
  }

  /** `refused` with the node's own words, or `malformed` if somebody else has answered. */
  function refusal(what: string, response: NodeResponse): NodeError {
    const said = options.answerOf(response)
    if (said === null) {
      const told = `${what} got HTTP ${response.status} that is not of ${node}`
      return new NodeError(node, told, { reason: 'malformed' })
    }
    const answer = { ...said, message: quotable(said.message) }
    return new NodeError(node, `${what} was refused: ${answer.message}`, {
      reason: 'refused',
      answer,
    })
  }

  /** The JSON object of an answer with 200 or 201. @throws NodeError what `refusal` makes of any other. */
  async function call(request: NodeRequest): Promise<Fields> {
    const response = await exchange(request)
    const { status, text } = response
    if (status === 200 || status === 201) return read.parse(text)
    throw refusal(request.what, response)
  }

  return { exchange, open, call, refusal, close: () => pool.destroy() }
}

async function boundedText(node: string, body: AsyncIterable<Buffer>): Promise<string> {
  const tooLarge = () => new NodeError(node, 'an answer is too large', { reason: 'malformed' })
  return Buffer.from(await boundedBytes(body, MAX_BODY_BYTES, tooLarge)).toString('utf8')
}
