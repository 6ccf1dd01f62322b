/** Bytes that are compressed once, and sent in the encoding that the client accepts. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Bytes with a type, in the encodings that browsers accept. */
export type Served = { type: string; etag: string; plain: Buffer; br: Buffer; gzip: Buffer }

/** Compresses once, at the highest level. */
export async function encode(plain: Buffer, type: string): Promise<Served> {
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain),
    promisify(gzip)(plain, { level: 9 }),
  ])
  return { type, etag: `"${digest([plain]).slice(0, 22)}"`, plain, br, gzip: zipped }
}

/** Sends the bytes. The caller says in `Vary` that they depend on `Accept-Encoding`. */
export function sendEncoded(
  request: FastifyRequest,
  reply: FastifyReply,
  served: Served,
): FastifyReply {
  const encoding = encodingFor(request)
  if (encoding !== 'plain') reply.header('content-encoding', encoding)
  return reply.type(served.type).send(served[encoding])
}

export function encodingFor({ headers }: FastifyRequest): 'br' | 'gzip' | 'plain' {
  const accepted = String(headers['accept-encoding'] ?? '')
  return /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'plain'
}

/** A hash of these parts, each with its length. */
export function digest(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(String(part.length)).update(part)
  return hash.digest('base64url')
}
