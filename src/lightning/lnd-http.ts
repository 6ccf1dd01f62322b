/** HTTP to LND's REST port: bounded in time and size, and every failure an `LndError`. */
import { Pool } from 'undici'
import { isObject, json } from './lnd-answers.ts'
import { LndError, quotable, transportError } from './lnd-error.ts'

export type LndHttp = {
  /** The JSON of a 200, within `timeoutMs` from connecting to the last byte. */
  call(ask: LndCall): Promise<unknown>

  /** The lines of an answer without an end, until `signal` aborts; null for one that is too long. */
  lines(path: string, signal: AbortSignal): AsyncGenerator<string | null>

  close(): Promise<void>
}

export type LndCall = {
  /** What the call does, for its errors: `looking up an invoice`. */
  what: string
  method: 'GET' | 'POST'
  path: string
  body?: Record<string, string | boolean>
  timeoutMs: number
}

// A settled invoice lists its HTLCs: 483 at most fit a channel, some 2.5 kB each with records.
const MAX_BODY_BYTES = 4 * 1024 * 1024

// LND makes no more invoices a second with more connections than this.
const MAX_CONNECTIONS = 32

export function createLndHttp(options: {
  baseUrl: string
  /** Hex. */
  macaroon: string
  /** The PEM that the node's own certificate must chain to; the system's roots without it. */
  certificate: string | undefined
  connectTimeoutMs: number
}): LndHttp {
  const pool = new Pool(options.baseUrl, {
    connections: MAX_CONNECTIONS,
    // HTTP/1.1, one request a connection: a request that hangs takes no other with it.
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: {
      timeout: options.connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      ...(options.certificate === undefined ? {} : { ca: options.certificate }),
    },
  })
  const headers = { 'grpc-metadata-macaroon': options.macaroon }

  async function call(ask: LndCall): Promise<unknown> {
    const signal = AbortSignal.timeout(ask.timeoutMs)
    try {
      return await unlessAborted(signal, exchange(ask, signal))
    } catch (error) {
      throw transportError(ask.what, error)
    }
  }

  async function exchange(ask: LndCall, signal: AbortSignal): Promise<unknown> {
    const response = await pool.request({
      method: ask.method,
      path: ask.path,
      headers: ask.body ? { ...headers, 'content-type': 'application/json' } : headers,
      body: ask.body ? JSON.stringify(ask.body) : null,
      signal,
    })
    const text = await boundedText(response.body)
    if (response.statusCode !== 200) throw refusal(ask.what, response.statusCode, text)
    return json(text)
  }

  async function* lines(path: string, signal: AbortSignal): AsyncGenerator<string | null> {
    const what = 'following the invoices'
    try {
      const response = await unlessAborted(
        signal,
        pool.request({
          method: 'GET',
          path,
          headers,
          signal,
          // The gateway sends its headers with the first event, which may be hours away.
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
      )
      if (response.statusCode !== 200) {
        throw refusal(what, response.statusCode, await boundedText(response.body))
      }
      yield* splitLines(response.body)
    } catch (error) {
      throw transportError(what, signal.reason ?? error)
    }
  }

  return { call, lines, close: () => pool.destroy() }
}

/** undici heeds the signal of a request only once that has a connection, however long that takes. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([work, aborted])
}

async function boundedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    // Leaving the loop destroys the body, and its connection with it.
    if (bytes > MAX_BODY_BYTES) throw new LndError('malformed', 'an answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function* splitLines(body: AsyncIterable<Buffer>): AsyncGenerator<string | null> {
  let parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      bytes += end - from
      parts.push(chunk.subarray(from, end))
      yield bytes > MAX_BODY_BYTES ? null : Buffer.concat(parts).toString('utf8')
      parts = []
      bytes = 0
      from = end + 1
    }
    bytes += chunk.length - from
    // Past the bound nothing is kept: the rest of the line only has to end.
    if (bytes > MAX_BODY_BYTES) parts = []
    else parts.push(chunk.subarray(from))
  }
}

/** LND's `{code, message, details}`, or the bare status of whatever stands in its place. */
function refusal(what: string, status: number, text: string): LndError {
  const answer = refusalAnswer(text)
  if (!answer) return new LndError('malformed', `${what} got HTTP ${status} that is not LND's`)
  return new LndError('refused', `${what} was refused: ${answer.message}`, answer)
}

function refusalAnswer(text: string): { code: number; message: string } | null {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return null
  }
  // A streaming call wraps the same fields.
  const fields = isObject(body) && isObject(body.error) ? body.error : body
  if (!isObject(fields)) return null
  const { code, message } = fields
  if (typeof code !== 'number' || typeof message !== 'string') return null
  return { code, message: quotable(message) }
}
