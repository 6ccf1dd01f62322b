/** Requests to one Mayfly service, with its answers read carefully. */
import { concat } from '../lib/bytes.ts'
import { isObject, parseJson } from '../lib/json.ts'
import { MayflyError } from './errors.ts'

/** No answer of the API is longer. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** An answer begins within this, once the body of its request has had time to be sent. */
const ANSWER_MS = 60_000
/** The slowest upload that is waited for: 8 KiB a second, a poor mobile line. */
const UPLOAD_BYTES_PER_MS = 8
/** The longest that the body of one answer is read, streams aside: 64 MiB at a slow line's pace. */
const BODY_MS = 15 * 60_000

export type ApiRequest = {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  token?: string
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer>
  signal?: AbortSignal | undefined
}

export type ApiResponse = { status: number; headers: Headers; body: unknown }

export type Http = {
  /** The answer, whatever its status. @throws MayflyError `service unreachable` for none. */
  request(request: ApiRequest): Promise<ApiResponse>
  /** The JSON object of a 200 answer, which has these members. @throws MayflyError for any other. */
  get<T extends object>(request: ApiRequest, ...members: (keyof T & string)[]): Promise<T>
  /** Performs a request whose answer has no content, 204. @throws MayflyError for any other. */
  perform(request: ApiRequest): Promise<void>
  /** The body of a 200 answer, yet to be read: server-sent events. @throws MayflyError for any other. */
  open(request: ApiRequest): Promise<ReadableStream<Uint8Array>>
  /** The bytes of a 200 answer of type `application/octet-stream`. @throws MayflyError for any other. */
  getBytes(request: ApiRequest): Promise<Uint8Array<ArrayBuffer>>
}

/** Looked up at each call: a page may replace it, and browsers want it called on its owner. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)

/** `fetch` is the platform's, unless a test or a proxy hands in another. */
export function createHttp(baseUrl: string, fetch: typeof globalThis.fetch): Http {
  const base = baseUrl.replace(/\/+$/, '')

  /** The answer as soon as it begins. `limit` ends the reading of its body, if it is told to. */
  async function send(request: ApiRequest): Promise<Sent> {
    const { method = 'GET', path, token, headers, body, signal } = request
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

  async function read({ response, limit }: Sent, signal?: AbortSignal): Promise<ApiResponse> {
    const text = new TextDecoder().decode(await whole({ response, limit }, signal))
    return { status: response.status, headers: response.headers, body: parseJson(text) ?? null }
  }

  /** A 200 answer of this media type: a proxy may answer in the service's place, with a page. */
  async function sendFor(type: string, request: ApiRequest): Promise<Sent> {
    const sent = await send(request)
    const { response, limit } = sent
    if (response.status !== 200) throw errorOf(await read(sent, request.signal))
    if (response.headers.get('content-type')?.startsWith(type)) return sent
    limit.end()
    await response.body?.cancel()
    throw new MayflyError('unexpected answer', response.status)
  }

  const request = async (sending: ApiRequest): Promise<ApiResponse> =>
    read(await send(sending), sending.signal)

  return {
    request,
    async get<T extends object>(sending: ApiRequest, ...members: (keyof T & string)[]) {
      const answer = await request(sending)
      const { status, body } = answer
      if (status !== 200) throw errorOf(answer)
      if (!isObject(body) || !members.every((name) => name in body)) {
        throw new MayflyError('unexpected answer', status)
      }
      return body as T
    },
    async perform(sending) {
      const answer = await request(sending)
      if (answer.status !== 204) throw errorOf(answer)
    },
    async open(sending) {
      const { response, limit } = await sendFor('text/event-stream', sending)
      const { body, status } = response
      // A stream lasts for as long as its reader likes.
      limit.end()
      if (body) return body
      throw new MayflyError('unexpected answer', status)
    },
    async getBytes(sending) {
      return whole(await sendFor('application/octet-stream', sending), sending.signal)
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

/** An abort is thrown as it is; any other end of a connection is `service unreachable`. */
async function orUnreachable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new MayflyError('service unreachable', 0, null, { cause })
  }
}

/** The whole body. One that exceeds the limit is cancelled, whatever its Content-Length. */
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
  return concat(...parts)
}

/** The error that an answer stands for. */
export function errorOf({ status, headers, body }: ApiResponse): MayflyError {
  const phrase = isObject(body) && typeof body.error === 'string' ? body.error : 'unexpected answer'
  return new MayflyError(phrase, status, retryAfterSeconds(headers))
}

/** Integer seconds of `Retry-After`, or null. */
export function retryAfterSeconds(headers: Headers): number | null {
  const value = headers.get('retry-after')
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : null
}
