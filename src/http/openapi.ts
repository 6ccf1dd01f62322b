/** The machine-readable description, made from the schemas that validate. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

export const OPENAPI_VERSION = '0.1.0'

/** Must be mounted before the routes that it describes. */
export async function mountOpenapi(app: FastifyInstance, publicUrl: () => string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Mayfly',
        version: OPENAPI_VERSION,
        description:
          'Temporary, narrowly scoped capabilities, paid over the Lightning network, without accounts.',
      },
      components: {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      },
    },
    hideUntagged: true,
  })
  let served = ''
  app.get('/openapi.json', async (_request, reply) => {
    // Made once: the routes are fixed when the server listens.
    served ||= JSON.stringify({ ...app.swagger(), servers: [{ url: publicUrl() }] })
    return reply
      .header('cache-control', 'public, max-age=300')
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .serializer((body: string) => body)
      .send(served)
  })
}
