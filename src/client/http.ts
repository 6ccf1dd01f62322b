/** Requests to one Mayfly service, with its answers read carefully. */
import { MayflyError } from './errors.ts'

/** No answer of the API is longer; a server that sends more is not ours. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** An answer begins within this, after the body that it answers has had its time. */
const ANSWER_MS = 60_000
/** The slowest upload that is waited for: 8 KiB a second, a poor mobile line. */
const UPLOAD_BYTES_PER_MS = 8
/** The longest that the body of one answer is read, streams aside: 64 MiB at a slow line's pace. */
const BODY_MS = 15 * 60_000

export type Ask = {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  token?: string
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer>
  signal?: AbortSignal | undefined
}

export type Answer = { status: number; headers: Headers; body: unknown }

export type Http = {
  /** The answer, whatever its status. @throws MayflyError `service unreachable` for none. */
  ask(ask: Ask): Promise<Answer>
  /** The JSON object of a 200 answer, which has these members. @throws MayflyError for any other. */
  get<T extends object>(ask: Ask, ...members: (keyof T & string)[]): Promise<T>
  /** Asks for what is answered without words, 204. @throws MayflyError for any other. */
  tell(ask: Ask): Promise<void>
  /** The body of a 200 answer, yet to be read: server-sent events. @throws MayflyError for any other. */
  open(ask: Ask): Promise<ReadableStream<Uint8Array>>
  /** The bytes of a 200 answer that are no page. @throws MayflyError for any other. */
  getBytes(ask: Ask): Promise<Uint8Array<ArrayBuffer>>
}

/** Looked up at each call: a page may replace it, and browsers want it called on its owner. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)

/** `fetch` is the platform's, unless a test or a proxy hands in another. */
export function createHttp(baseUrl: string, fetch: typeof globalThis.fetch): Http {
  const base = baseUrl.replace(/\/+$/, '')

  /** The answer as soon as it begins. `limit` ends the reading of its body, if it is told to. */
  async function send(ask: Ask): Promise<{ response: Response; limit: Limit }> {
    const { method = 'GET', path, token, headers, body, signal } = ask
    const limit = limitOf(signal)
    limit.within(ANSWER_MS + (body?.length ?? 0) / UPLOAD_BYTES_PER_MS)
    const sent = fetch(base + path, {
      method,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(body === undefined ? {} : { body }),
      signal: limit.signal,
      // A capability goes to the address that it was bought at, and nowhere else.
      redirect: 'manual',
    })
    try {
      return { response: await orUnreachable(sent, signal), limit }
    } catch (error) {
      limit.end()
      throw error
    }
  }

  async function read({ response, limit }: Sent, signal?: AbortSignal): Promise<Answer> {
    const text = new TextDecoder().decode(await whole({ response, limit }, signal))
    return { status: response.status, headers: response.headers, body: parse(text) }
  }

  /** A 200 answer of this media type: what stands between may answer for the service, in pages. */
  async function sendFor(type: string, request: Ask): Promise<Sent> {
    const sent = await send(request)
    const { response, limit } = sent
    if (response.status !== 200) throw errorOf(await read(sent, request.signal))
    if (response.headers.get('content-type')?.startsWith(type)) return sent
    limit.end()
    await response.body?.cancel()
    throw new MayflyError('unexpected answer', response.status)
  }

  const ask = async (request: Ask): Promise<Answer> => read(await send(request), request.signal)

  return {
    ask,
    async get<T extends object>(request: Ask, ...members: (keyof T & string)[]) {
      const answer = await ask(request)
      const { status, body } = answer
      if (status !== 200) throw errorOf(answer)
      const isIt =
        typeof body === 'object' && body !== null && members.every((name) => name in body)
      if (!isIt) throw new MayflyError('unexpected answer', status)
      return body as T
    },
    async tell(request) {
      const answer = await ask(request)
      if (answer.status !== 204) throw errorOf(answer)
    },
    async open(request) {
      const { response, limit } = await sendFor('text/event-stream', request)
      const { body, status } = response
      // A stream lasts for as long as its reader likes.
      limit.end()
      if (body) return body
      throw new MayflyError('unexpected answer', status)
    },
    async getBytes(request) {
      return whole(await sendFor('application/octet-stream', request), request.signal)
    },
  }
}

type Sent = { response: Response; limit: Limit }

/** The body of an answer, in its time. */
async function whole(
  { response, limit }: Sent,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  limit.within(BODY_MS)
  try {
    return await bytesOf(response, signal)
  } finally {
    limit.end()
  }
}

/** How long a request may take. `signal` is aborted after that, or with the caller's own. */
type Limit = {
  signal: AbortSignal
  /** Begins to count anew. */
  within(ms: number): void
  /** Counts no more. */
  end(): void
}

function limitOf(signal?: AbortSignal): Limit {
  const over = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
    within(ms) {
      clearTimeout(timer)
      timer = setTimeout(() => {
        over.abort(new DOMException('The service did not answer in time', 'TimeoutError'))
      }, ms)
    },
    end: () => clearTimeout(timer),
  }
}

/** An abort stays what it is; any other end of a connection is one error of ours. */
async function orUnreachable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new MayflyError('service unreachable', 0, null, { cause })
  }
}

/** The whole body; one without an end is given up at the bound, whatever it said of its length. */
async function bytesOf(
  { body, status }: Response,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const parts: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await orUnreachable(reader.read(), signal)
    if (done) break
    parts.push(value)
    length += value.length
    if (length <= MAX_ANSWER_BYTES) continue
    // Not waited for: a lost connection may never say that it is closed.
    reader.cancel().catch(() => undefined)
    throw new MayflyError('unexpected answer', status)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** The error that an answer stands for. */
export function errorOf({ status, headers, body }: Answer): MayflyError {
  const isError = typeof body === 'object' && body !== null && 'error' in body
  const phrase = isError && typeof body.error === 'string' ? body.error : 'unexpected answer'
  return new MayflyError(phrase, status, retryAfterSeconds(headers))
}

/** Integer seconds of `Retry-After`, or null. */
export function retryAfterSeconds(headers: Headers): number | null {
  const value = headers.get('retry-after')
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : null
}

function parse(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text)
  } catch {
    return null
  }
}
