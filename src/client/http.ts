/** Requests to one Mayfly service, with its answers read carefully. */
import { MayflyError } from './errors.ts'

/** No answer of the API is longer; a server that sends more is not ours. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

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
  /** The body of a 2xx answer. @throws MayflyError for any other. */
  get(ask: Ask): Promise<unknown>
  /** A 200 answer with its body yet to be read, for a stream. @throws MayflyError for any other. */
  open(ask: Ask): Promise<ReadableStream<Uint8Array>>
  /** The bytes of a 2xx answer. @throws MayflyError for any other. */
  getBytes(ask: Ask): Promise<Uint8Array<ArrayBuffer>>
}

/** Looked up at each call: a page may replace it, and browsers want it called on its owner. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)

/** `fetch` is the platform's, unless a test or a proxy hands in another. */
export function createHttp(baseUrl: string, fetch: typeof globalThis.fetch): Http {
  const base = baseUrl.replace(/\/+$/, '')

  function send({ method = 'GET', path, token, headers, body, signal }: Ask): Promise<Response> {
    const sent = fetch(base + path, {
      method,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
      redirect: 'error',
    })
    return orUnreachable(sent, signal)
  }

  async function read(response: Response, signal?: AbortSignal): Promise<Answer> {
    await refuseTooLarge(response)
    const text = await orUnreachable(response.text(), signal)
    return { status: response.status, headers: response.headers, body: parse(text) }
  }

  const ask = async (request: Ask): Promise<Answer> => read(await send(request), request.signal)

  return {
    ask,
    async get(request) {
      const answer = await ask(request)
      if (answer.status >= 200 && answer.status < 300) return answer.body
      throw errorOf(answer)
    },
    async open(request) {
      const response = await send(request)
      if (response.status === 200 && response.body) return response.body
      throw errorOf(await read(response))
    },
    async getBytes(request) {
      const response = await send(request)
      if (!response.ok) throw errorOf(await read(response))
      await refuseTooLarge(response)
      return new Uint8Array(await orUnreachable(response.arrayBuffer(), request.signal))
    },
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

async function refuseTooLarge(response: Response): Promise<void> {
  if (Number(response.headers.get('content-length') ?? 0) <= MAX_ANSWER_BYTES) return
  await response.body?.cancel()
  throw new MayflyError('unexpected answer', response.status)
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
