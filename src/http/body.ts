/** Reads request bodies as they are: counted while they arrive, never trusted by their headers. */
import type { IncomingMessage } from 'node:http'
import { type Phrase, type Problem, problem } from './errors.ts'

/** So much of a refused body is still read, so that its sender can read our answer. */
const DRAIN_BYTES = 1024 * 1024

/**
 * The whole body, at most `limit` bytes.
 * @throws Problem `phrase` for a larger one, after which the connection closes; `request timeout`
 * when the peer went away.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  phrase: Phrase = 'request too large',
): Promise<Buffer> {
  const tooLarge = (): Problem => problem(phrase, { connection: 'close' })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let hasEnded = false
    let isTooLarge = Number(request.headers['content-length'] ?? 0) > limit
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      isTooLarge ||= bytes > limit
      if (!isTooLarge) chunks.push(chunk)
      else if (bytes > limit + DRAIN_BYTES) {
        request.pause()
        reject(tooLarge())
      }
    })
    request.on('end', () => {
      hasEnded = true
      if (isTooLarge) reject(tooLarge())
      else resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes))
    })
    request.on('error', () => reject(problem('request timeout')))
    request.on('close', () => {
      if (!hasEnded) reject(problem('request timeout'))
    })
  })
}
