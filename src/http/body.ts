/** Reads request bodies as they are: counted while they arrive, never trusted by their headers. */
import type { IncomingMessage } from 'node:http'
import { type Phrase, type Problem, problem } from './errors.ts'

/** So much of a refused body is still read, so that its sender can read our answer. */
const DRAIN_BYTES = 1024 * 1024
/** Bodies under way arrive or are timed out within this. */
const RETRY_UPLOAD_SECONDS = 10

export type BodyOptions = {
  /** What a body above the limit is refused with. Default `request too large`. */
  tooLarge?: Phrase
  /** Asked for each part that comes; false refuses the body with `rate limited`. */
  take?: (bytes: number) => boolean
}

/**
 * The whole body, at most `limit` bytes.
 * @throws Problem for one that is refused, after which the connection closes; `request timeout`
 * when the peer went away.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  { tooLarge = 'request too large', take = () => true }: BodyOptions = {},
): Promise<Buffer> {
  const isAnnounced = Number(request.headers['content-length'] ?? 0) > limit
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let hasEnded = false
    let refusal = isAnnounced ? closing(tooLarge) : null
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limit) refusal ??= closing(tooLarge)
      if (!refusal && !take(chunk.length)) {
        refusal = closing('rate limited', { 'retry-after': String(RETRY_UPLOAD_SECONDS) })
      }
      if (!refusal) return void chunks.push(chunk)
      chunks.length = 0
      if (bytes > limit + DRAIN_BYTES) {
        request.pause()
        reject(refusal)
      }
    })
    request.on('end', () => {
      hasEnded = true
      if (refusal) reject(refusal)
      else resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes))
    })
    request.on('error', () => reject(problem('request timeout')))
    request.on('close', () => {
      if (!hasEnded) reject(problem('request timeout'))
    })
  })
}

const closing = (phrase: Phrase, headers: Record<string, string> = {}): Problem =>
  problem(phrase, { ...headers, connection: 'close' })
