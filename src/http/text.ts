/** A text at a fixed address, such as /llms.txt, which any page and any cache may read. */
import type { FastifyInstance } from 'fastify'

/** @param text made once, at the first request: by then the public address is known. */
export function mountText(
  app: FastifyInstance,
  { path, type, text }: { path: string; type: string; text: () => string },
): void {
  let served = ''
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (_request, reply) => {
      served ||= text()
      return reply
        .header('cache-control', 'public, max-age=300')
        .header('access-control-allow-origin', '*')
        .type(type)
        .send(served)
    },
  })
}
