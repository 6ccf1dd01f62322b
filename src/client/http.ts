/** Requests to one Mayfly service. Answers are bounded in size and time, and checked. */
import { boundedBytes, chunksOf } from '../lib/bytes.ts'
import { isObject, parseJson } from '../lib/json.ts'
import { MayflyError, phraseOf } from './errors.ts'
import { wait } from './wait.ts'

/** The maximum size of an answer. The API never sends a longer one. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** How long an answer may take to begin, after the time for sending the request's body. */
const ANSWER_MS = 60_000
/** The slowest accepted upload: 8 KiB a second, a poor mobile connection. */
const UPLOAD_BYTES_PER_MS = 8
/** How long the body of an answer may take, except for streams: 64 MiB on a slow connection. */
const BODY_MS = 15 * 60_000
/** How long a request is repeated whose caller names no time: as long as a person waits without a word. */
const PATIENCE_MS = 5_000
/** The pause before the first repeat. It doubles each time, up to the maximum. */
const REPEAT_SECONDS = 0.25
const MAX_REPEAT_SECONDS = 15

/**
 * What every call takes. What only reads is repeated within `timeoutMs` where its answer is lost, and so are pings.
 */
export type CallOptions = {
  /** Ends the call, which then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined
  /** The most that the whole call may take, in milliseconds. Without it nothing is repeated for longer than 5 s. */
  timeoutMs?: number | undefined
}

export type ApiRequest = CallOptions & {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  token?: string | undefined
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** A body of JSON, with its type. */
  json?: unknown
  /** Whether two of it do no more than one: then it is repeated if its answer is lost. */
  isRepeatable?: boolean
}

export type ApiResponse = { status: number; headers: Headers; body: unknown }

export type Http = ReturnType<typeof createHttp>

/** Reads `globalThis.fetch` at each call: a page may replace it, and browsers need it as a method. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)

/** @param fetch the platform's, or a replacement by a test or proxy. */
export function createHttp(baseUrl: string, fetch: typeof globalThis.fetch) {
  const base = baseUrl.replace(/\/+$/, '')

  /** Resolves when the answer begins. `limit` bounds the time to read its body. */
  async function send(request: ApiRequest, until: number): Promise<Sent> {
    const { method = 'GET', path, token, json, signal } = request
    const body = json === undefined ? request.body : JSON.stringify(json)
    const limit = limitOf(until, signal)
    limit.within(ANSWER_MS + (body?.length ?? 0) / UPLOAD_BYTES_PER_MS)
    const sent = fetch(base + path, {
      method,
      headers: {
        ...request.headers,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body }),
      signal: limit.signal,
      // Tokens go only to the service's own address, never to a redirect's target.
      redirect: 'manual',
      // Nothing is to be stored. Firefox would let a second tab wait 20 seconds for the first one's stream.
      cache: 'no-store',
    })
    try {
      return { response: await orUnreachable(sent, signal), limit }
    } catch (error) {
      limit.end()
      throw error
    }
  }

  async function attempt(request: ApiRequest, until: number): Promise<Answer> {
    const sent = await send(request, until)
    const { status, headers } = sent.response
    return { status, headers, bytes: await whole(sent, request.signal) }
  }

  /** The whole answer, with any status. Repeated while it is lost, if that is harmless and there is time. */
  async function exchange(request: ApiRequest): Promise<Answer> {
    const { signal, timeoutMs, isRepeatable = false } = request
    const begunAt = performance.now()
    const until = begunAt + (timeoutMs ?? Number.POSITIVE_INFINITY)
    const patientUntil = begunAt + (timeoutMs ?? PATIENCE_MS)
    for (let losses = 0; ; losses++) {
      const answer = await attempt(request, until).catch((error: unknown) => {
        if (signal?.aborted || !(error instanceof MayflyError) || error.status !== 0) throw error
        return error
      })
      const isError = answer instanceof MayflyError
      const asked = isError ? null : retryAfterSeconds(answer.headers)
      const pause = asked ?? Math.min(REPEAT_SECONDS * 2 ** losses, MAX_REPEAT_SECONDS)
      const isOver = !isRepeatable || performance.now() + pause * 1000 > patientUntil
      if (isError && isOver) throw answer
      if (!isError && (isOver || !isBusy(read(answer)))) return answer
      await wait(pause, signal)
    }
  }

  /** The answer, with any status. @throws MayflyError `service unreachable` without one. */
  const request = async (sending: ApiRequest): Promise<ApiResponse> => read(await exchange(sending))

  /** The 200 answer. @throws MayflyError for any other. */
  async function answer(sending: ApiRequest): Promise<ApiResponse> {
    const got = await request(sending)
    if (got.status !== 200) throw errorOf(got)
    return got
  }

  return {
    request,
    answer,
    /** The JSON object of a 200 answer, which must have these members. @throws MayflyError otherwise. */
    async get<T extends object>(sending: ApiRequest, members: Members<T> = []): Promise<T> {
      const { status, body } = await answer(sending)
      if (!isObject(body) || !members.every((name) => name in body)) {
        throw new MayflyError('unexpected answer', status)
      }
      return body as T
    },
    /** Performs a request that is answered with 204. @throws MayflyError for any other answer. */
    async perform(sending: ApiRequest): Promise<void> {
      const answer = await request(sending)
      if (answer.status !== 204) throw errorOf(answer)
    },
    /** The unread body of a 200 answer with server-sent events. @throws MayflyError otherwise. */
    async open(sending: ApiRequest): Promise<ReadableStream<Uint8Array>> {
      const sent = await send(sending, Number.POSITIVE_INFINITY)
      const { body, status, headers } = sent.response
      if (status !== 200) {
        throw errorOf(read({ status, headers, bytes: await whole(sent, sending.signal) }))
      }
      // A stream has no time limit.
      sent.limit.end()
      if (body && isOf('text/event-stream', headers)) return body
      await body?.cancel()
      throw new MayflyError('unexpected answer', status)
    },
    /** The bytes of a 200 answer of type `application/octet-stream`. @throws MayflyError otherwise. */
    async getBytes(sending: ApiRequest): Promise<Uint8Array<ArrayBuffer>> {
      const answer = await exchange(sending)
      if (answer.status !== 200) throw errorOf(read(answer))
      if (isOf('application/octet-stream', answer.headers)) return answer.bytes
      throw new MayflyError('unexpected answer', answer.status)
    },
  }
}

/** What an answer must have, so that a caller can rely on it. */
type Members<T> = readonly (keyof T & string)[]

export type Calls = ReturnType<typeof callsAt>

/** The calls on what has this path, with the token that they need. Without it they are sent, and refused. */
export function callsAt(http: Http, base: string, token?: string) {
  const at = (below: string, more: Omit<ApiRequest, 'path'> = {}) => ({
    path: base + below,
    token,
    ...more,
  })
  const reading = (options?: CallOptions) => ({ ...options, isRepeatable: true })
  return {
    /** The answer to what only reads. */
    read: <T extends object>(below: string, members: Members<T>, options?: CallOptions) =>
      http.get<T>(at(below, reading(options)), members),
    bytes: (below: string, options?: CallOptions) => http.getBytes(at(below, reading(options))),
    /** The answer to a change. */
    change: <T extends object>(
      [method, below]: ['POST' | 'PUT' | 'PATCH', below: string],
      members: Members<T>,
      asked?: Pick<ApiRequest, 'json' | 'isRepeatable'> & CallOptions,
    ): Promise<T> => http.get<T>({ ...at(below, asked), method }, members),
    remove: (below: string, options?: CallOptions) =>
      http.perform(at(below, { ...options, method: 'DELETE' })),
  }
}

type Answer = { status: number; headers: Headers; bytes: Uint8Array<ArrayBuffer> }

function read({ status, headers, bytes }: Answer): ApiResponse {
  return { status, headers, body: parseJson(new TextDecoder().decode(bytes)) ?? null }
}

/** Whether an answer has this media type. A proxy could answer instead of the service, with a page. */
const isOf = (type: string, headers: Headers): boolean =>
  headers.get('content-type')?.startsWith(type) ?? false

/**
 * Whether the same request may be answered soon: the service is busy or away. What is sold out is not back in
 * seconds, so its buyer hears it at once.
 */
export const isBusy = ({ status, body }: Pick<ApiResponse, 'status' | 'body'>): boolean =>
  status === 429 || (status >= 500 && !(isObject(body) && body.error === 'sold out'))

type Sent = { response: Response; limit: Limit }

/** The body of an answer, within its time limit. */
async function whole(
  { response, limit }: Sent,
  signal: AbortSignal | undefined,
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

/** @param until the end of all time limits, as `performance.now()` counts. */
function limitOf(until: number, signal?: AbortSignal): Limit {
  const over = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
    within(mostMs) {
      const ms = Math.max(0, Math.min(mostMs, until - performance.now()))
      clearTimeout(timer)
      timer = setTimeout(() => {
        const seconds = Math.round(ms / 100) / 10
        over.abort(new DOMException(`The service did not answer in ${seconds} s`, 'TimeoutError'))
      }, ms)
    },
    end: () => clearTimeout(timer),
  }
}

/** An end by the caller stays what the caller says. Any other failure of a connection becomes `service unreachable`. */
async function orUnreachable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    throw new MayflyError('service unreachable', 0, { cause })
  }
}

/** Reads the whole body. Cancels one that exceeds the limit, whatever its Content-Length. */
const bytesOf = (
  { body, status }: Response,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> =>
  boundedBytes(
    chunksOf(body, (read) => orUnreachable(read, signal)),
    MAX_ANSWER_BYTES,
    () => new MayflyError('unexpected answer', status),
  )

/** The error of a refused request, from its answer. */
export function errorOf({ status, headers, body }: ApiResponse): MayflyError {
  const { error, field, expected } = isObject(body) ? body : {}
  return new MayflyError(phraseOf(error) ?? 'unexpected answer', status, {
    retryAfterSeconds: retryAfterSeconds(headers),
    field: shortText(field),
    expected: shortText(expected),
  })
}

/** A short line that may be shown, or null: the service at this address may be anybody's. */
const shortText = (value: unknown): string | null =>
  typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : null

/** The integer seconds of `Retry-After` (RFC 9110 §10.2.3), or null. Zero would have us ask without a pause, for ever. */
export function retryAfterSeconds(headers: Headers): number | null {
  const value = headers.get('retry-after')
  return value !== null && /^[1-9]\d{0,8}$/.test(value) ? Number(value) : null
}

/** A query without what is undefined. */
export function searchOf(query: object): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value))
  }
  return search.size > 0 ? `?${search}` : ''
}

/**
 * What is on all pages of a list.
 * @throws MayflyError `unexpected answer` for an empty page before the last, and for one whose next one came before:
 *   a hostile service would send such pages for ever.
 */
export async function* allPages<Query extends { cursor?: unknown }, Item, List extends string>(
  query: Query,
  list: List,
  load: (query: Query) => Promise<Record<List, Item[]> & { nextCursor: Query['cursor'] | null }>,
): AsyncGenerator<Item, void, undefined> {
  const seen = new Set<unknown>()
  for (let next = query; ; ) {
    seen.add(next.cursor)
    const { [list]: items, nextCursor } = await load(next)
    yield* items
    if (nextCursor === null) return
    if (items.length === 0 || seen.has(nextCursor)) throw new MayflyError('unexpected answer', 200)
    next = { ...query, cursor: nextCursor }
  }
}
