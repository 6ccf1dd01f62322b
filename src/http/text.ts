/** A text at a fixed address, such as /llms.txt, which any page and any cache may read. */
import type { FastifyInstance } from 'fastify'
import { encode, type Served, sendEncoded } from './encoded.ts'
import { problem } from './errors.ts'

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
