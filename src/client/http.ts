/** Requests to one Mayfly service. Answers are bounded in size and time, and checked. */
import { concat } from '../lib/bytes.ts'
import { isObject, parseJson } from '../lib/json.ts'
import { MayflyError } from './errors.ts'

/** The maximum size of an answer. The API never sends a longer one. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** How long an answer may take to begin, after the time for sending the request's body. */
const ANSWER_MS = 60_000
/** The slowest accepted upload: 8 KiB a second, a poor mobile connection. */
const UPLOAD_BYTES_PER_MS = 8
/** How long the body of an answer may take, except for streams: 64 MiB on a slow connection. */
const BODY_MS = 15 * 60_000

export type ApiRequest = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  token?: string
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer>
  signal?: AbortSignal | undefined
}

export type ApiResponse = { status: number; headers: Headers; body: unknown }

export type Http = {
  /** The answer, with any status. @throws MayflyError `service unreachable` without one. */
  request(request: ApiRequest): Promise<ApiResponse>
  /** The JSON object of a 200 answer, which must have these members. @throws MayflyError otherwise. */
  get<T extends object>(request: ApiRequest, ...members: (keyof T & string)[]): Promise<T>
  /** Performs a request that is answered with 204. @throws MayflyError for any other answer. */
  perform(request: ApiRequest): Promise<void>
  /** The unread body of a 200 answer with server-sent events. @throws MayflyError otherwise. */
  open(request: ApiRequest): Promise<ReadableStream<Uint8Array>>
  /** The bytes of a 200 answer of type `application/octet-stream`. @throws MayflyError otherwise. */
  getBytes(request: ApiRequest): Promise<Uint8Array<ArrayBuffer>>
}

/** Reads `globalThis.fetch` at each call: a page may replace it, and browsers need it as a method. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)

/** @param fetch the platform's, or a replacement by a test or proxy. */
export function createHttp(baseUrl: string, fetch: typeof globalThis.fetch): Http {
  const base = baseUrl.replace(/\/+$/, '')

  /** Resolves when the answer begins. `limit` bounds the time to read its body. */
  async function send(request: ApiRequest): Promise<Sent> {
    const { method = 'GET', path, token, headers, body, signal } = request
    const limit = limitOf(signal)
    limit.within(ANSWER_MS + (body?.length ?? 0) / UPLOAD_BYTES_PER_MS)
    const sent = fetch(base + path, {
      method,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(body === undefined ? {} : { body }),
      signal: limit.signal,
      // Tokens go only to the service's own address, never to a redirect's target.
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

  /** A 200 answer of this media type. A proxy could answer instead of the service, with a page. */
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
      // A stream has no time limit.
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

/** The body of an answer, within its time limit. */
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

/** A time limit. `signal` aborts after that time, or together with the caller's own signal. */
type Limit = {
  signal: AbortSignal
  /** Restarts the limit with this time. */
  within(ms: number): void
  /** Removes the limit. */
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
        const seconds = Math.round(ms / 1000)
        over.abort(new DOMException(`The service did not answer in ${seconds} s`, 'TimeoutError'))
      }, ms)
    },
    end: () => clearTimeout(timer),
  }
}

/** Rethrows an abort as it is. Any other failure of a connection becomes `service unreachable`. */
async function orUnreachable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new MayflyError('service unreachable', 0, { cause })
  }
}

/** Reads the whole body. Cancels one that exceeds the limit, whatever its Content-Length. */
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
    // Not awaited: on a lost connection this may never resolve.
    reader.cancel().catch(() => undefined)
    throw new MayflyError('unexpected answer', status)
  }
  return concat(...parts)
}

/** The error of a refused request, from its answer. */
export function errorOf({ status, headers, body }: ApiResponse): MayflyError {
  const phrase = isObject(body) && typeof body.error === 'string' ? body.error : 'unexpected answer'
  const { field, expected } = isObject(body) ? body : {}
  return new MayflyError(phrase, status, {
    retryAfterSeconds: retryAfterSeconds(headers),
    ...{ field: shortText(field), expected: shortText(expected) },
  })
}

/** A short line that may be shown, or null: the service at this address may be anybody's. */
const shortText = (value: unknown): string | null =>
  typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : null

/** The integer seconds of `Retry-After` (RFC 9110 §10.2.3), or null. */
export function retryAfterSeconds(headers: Headers): number | null {
  const value = headers.get('retry-after')
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : null
}
