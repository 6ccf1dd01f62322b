/** The middleware for Node's requests and responses, which Express and Fastify use. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AnswerHeaders, isKept, MAX_STORED_BYTES } from './stored-answers.ts'
import type { Admission } from './visit.ts'

/** How long a handler may take after its client left, if the answer is to be stored. */
const AFTER_CLOSE_MS = 60_000

/** Whether the client has left. */
export const isGone = (response: ServerResponse): boolean =>
  response.destroyed || response.socket?.destroyed === true

/**
 * Reports the outcome of the handler. It failed if a 5xx was fully written to a connected client. A
 * connection that ends earlier may be the client's doing, and proves no failure.
 */
export function watchResponse(response: ServerResponse, admission: Admission): void {
  const { spent, failed, wantsAnswer } = admission
  let isClosed = false
  if (wantsAnswer) {
    captureBody(response, (answer) => {
      if (answer) spent(answer)
      else if (isClosed) spent()
    })
  }
  response.once('finish', () => {
    // After `close`, this report has no effect.
    if (response.statusCode >= 500) void failed()
    else spent()
  })
  response.once('close', () => {
    isClosed = true
    if (wantsAnswer && !response.writableEnded) setTimeout(spent, AFTER_CLOSE_MS).unref()
    else spent()
  })
}

/** Captures what the handler writes. Calls `onEnd` with the whole answer, or null. */
function captureBody(
  response: ServerResponse,
  onEnd: (answer: Parameters<Admission['spent']>[0] | null) => void,
): void {
  const write = response.write.bind(response) as (...args: unknown[]) => boolean
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse
  const chunks: Buffer[] = []
  let length = 0
  let coding: unknown

  function capture(chunk: unknown, encoding: unknown): void {
    if (length === 0) coding = response.getHeader('content-encoding')
    const bytes = bytesOf(chunk, encoding)
    length += bytes.length
    if (length <= MAX_STORED_BYTES) chunks.push(bytes)
    else chunks.length = 0
  }

  response.write = ((...args: unknown[]) => {
    capture(args[0], args[1])
    return write(...args)
  }) as typeof response.write
  response.end = ((...args: unknown[]) => {
    const isFirst = !response.writableEnded
    if (isFirst) capture(args[0], args[1])
    const ended = end(...args)
    const { statusCode: status } = response
    // Otherwise an encoder, such as compression, has changed the captured bytes.
    const isUnchanged = response.getHeader('content-encoding') === coding
    const isWhole = isUnchanged && length <= MAX_STORED_BYTES && isKept(status)
    if (isFirst) {
      onEnd(isWhole ? { status, headers: headersOf(response), body: Buffer.concat(chunks) } : null)
    }
    return ended
  }) as typeof response.end
}

function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}

function headersOf(response: ServerResponse): AnswerHeaders {
  const headers: AnswerHeaders = {}
  for (const [name, value] of Object.entries(response.getHeaders())) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value : String(value)
  }
  return headers
}

export function setHeaders(response: ServerResponse, headers: AnswerHeaders): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

export function headerOf({ headersDistinct }: IncomingMessage, name: string): string | null {
  return headersDistinct[name]?.join(', ') ?? null
}
