/** Bytes that are compressed once, and sent in the encoding that the client accepts. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../errors.ts'

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

// A text at a fixed address, such as /llms.txt, which any page and any cache may read.

/**
 * @param text made at the first request: by then the public address is known. Null while nothing is there.
 * @param edition another number when the text must be made anew.
 */
export function mountText(
  app: FastifyInstance,
  {
    path,
    type,
    text,
    edition,
  }: { path: string; type: string; text: () => string | null; edition: () => number },
): void {
  let made: { served: Promise<Served> | null; edition: number } | null = null
  const served = (): Promise<Served> | null => {
    const now = edition()
    if (made?.edition !== now) {
      const fresh = text()
      const mediaType = /;/.test(type) ? type : `${type}; charset=utf-8`
      made = { edition: now, served: fresh === null ? null : encode(Buffer.from(fresh), mediaType) }
    }
    return made.served
  }
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (request, reply) => {
      const here = served()
      if (here === null) throw problem('not found')
      reply
        .header('cache-control', 'public, max-age=300')
        .header('access-control-allow-origin', '*')
        .header('vary', 'accept-encoding')
      return sendEncoded(request, reply, await here)
    },
  })
}
