/** Requests to somebody's node with the platform's fetch, and answers of bounded size. */
import { isObject, parseJson } from '../../lib/json.ts'

/** No answer to a payment is longer; a payment lists its attempts. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

export type NodeRequest = {
  method: 'GET' | 'POST'
  headers?: Record<string, string>
  json?: unknown
  form?: Record<string, string>
  signal: AbortSignal
}

/** `body` is the answer's JSON, or undefined where it is not JSON; `text` is always there. */
export type NodeResponse = { status: number; body: unknown; text: string }

/** The node refused, or something else answered in its place. The message shows no secret. */
export class NodeRefused extends Error {
  override name = 'NodeRefused'
}

/** The whole answer, whatever its status. @throws where there was none, or one without an end. */
export async function requestNode(
  fetch: typeof globalThis.fetch,
  url: string,
  request: NodeRequest,
): Promise<NodeResponse> {
  const response = await openNode(fetch, url, request)
  let text = ''
  for await (const part of textParts(response)) text += part
  return { status: response.status, body: parseJson(text), text }
}

/** The answer before its body, for a stream. */
export function openNode(
  fetch: typeof globalThis.fetch,
  url: string,
  { method, headers, json, form, signal }: NodeRequest,
): Promise<Response> {
  return fetch(url, {
    method,
    headers: {
      ...headers,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    signal,
    redirect: 'error',
  })
}

/** The lines of a stream; leaving the loop ends the request. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = ''
  for await (const part of textParts(response)) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

async function* textParts({ body }: Response): AsyncGenerator<string> {
  if (!body) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      bytes += value.length
      if (bytes > MAX_ANSWER_BYTES) throw new RangeError('an answer of the node is too large')
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** The fields of an object; no fields for any other value. */
export function fields(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

const MAX_QUOTED_CHARACTERS = 200

/** A node's own message, shortened, without anything long enough to be a secret; or null. */
export function textOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.trim() === '') return null
  return value
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '…')
    .replaceAll(/[^\x20-\x7e…]/g, ' ')
    .slice(0, MAX_QUOTED_CHARACTERS)
}
