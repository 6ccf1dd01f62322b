/** A text at a fixed address, such as /llms.txt, which any page and any cache may read. */
import type { FastifyInstance } from 'fastify'
import { encode, type Served, sendEncoded } from './encoded.ts'

/** @param text made once, at the first request: by then the public address is known. */
export function mountText(
  app: FastifyInstance,
  { path, type, text }: { path: string; type: string; text: () => string },
): void {
  let served: Promise<Served> | null = null
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (request, reply) => {
      served ??= encode(Buffer.from(text()), /;/.test(type) ? type : `${type}; charset=utf-8`)
      reply
        .header('cache-control', 'public, max-age=300')
        .header('access-control-allow-origin', '*')
        .header('vary', 'accept-encoding')
      return sendEncoded(request, reply, await served)
    },
  })
}
