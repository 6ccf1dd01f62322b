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

/** Sends the bytes, unless the client has them already. */
export function sendEncoded(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  served: Served,
): FastifyReply {
  const accepts = (name: string): boolean => qualityOf(name, headers['accept-encoding']) > 0
  const encoding = accepts('br') ? 'br' : accepts('gzip') ? 'gzip' : 'plain'
  // A strong ETag, so each encoding needs its own (RFC 9110 §8.8.3.3).
  const etag = encoding === 'plain' ? served.etag : served.etag.replace(/"$/, `-${encoding}"`)
  reply.header('etag', etag)
  if (!reply.hasHeader('vary')) reply.header('vary', 'accept-encoding')
  if (reply.statusCode === 200 && headers['if-none-match'] === etag) return reply.code(304).send()
  if (encoding !== 'plain') reply.header('content-encoding', encoding)
  return reply.type(served.type).send(served[encoding])
}

/** The quality of a value that a header such as `Accept` names exactly (RFC 9110 §12.4.2), or 0. */
export function qualityOf(name: string, accepted: string | string[] = ''): number {
  for (const one of String(accepted).split(',')) {
    const [value, ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    if (value !== name) continue
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    return q === undefined ? 1 : Number(q.slice(2)) || 0
  }
  return 0
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
      return sendEncoded(request, reply, await here)
    },
  })
}
