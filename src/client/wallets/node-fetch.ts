/** Requests to a node with the platform's fetch, and answers of bounded size. */
import { chunksOf } from '../../lib/bytes.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import { quotable } from '../../lib/quotable.ts'

/** The maximum size of an answer. A payment lists all of its attempts. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

export type NodeRequest = {
  method: 'GET' | 'POST'
  headers?: Record<string, string>
  json?: unknown
  form?: Record<string, string>
  signal: AbortSignal
}

/** `body` is the answer's JSON, or undefined if it is not JSON. `text` is always set. */
export type NodeResponse = { status: number; body: unknown; text: string }

/** The node refused, or a proxy answered instead of it. The message contains no secret. */
export class NodeRefused extends Error {
  override name = 'NodeRefused'
}

/** The whole answer, with any status. @throws Error without an answer, or for one that is too long. */
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

/** The answer with its body unread, for a stream. */
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

/** The lines of a stream. Leaving the loop ends the request. */
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
  const decoder = new TextDecoder()
  let bytes = 0
  for await (const part of chunksOf(body)) {
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw new RangeError('an answer of the node is too large')
    yield decoder.decode(part, { stream: true })
  }
}

/** The fields of an object, or an empty object for any other value. */
export function fields(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** A node's message, without a secret, or null without one. */
export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? quotable(value) : null
