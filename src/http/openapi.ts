/** The machine-readable description, made from the schemas that validate. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

export const OPENAPI_VERSION = '0.1.0'

/** For registries of paid services (draft-payment-discovery-01). */
const SERVICE_INFO = {
  categories: ['developer-tools'],
  docs: { apiReference: '/openapi.json', llms: '/llms.txt' },
}

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
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          payment: {
            type: 'http',
            scheme: 'Payment',
            description: 'HTTP Payment Authentication with a Lightning charge',
          },
          l402: { type: 'http', scheme: 'L402', description: 'A macaroon and a preimage' },
        },
      },
    },
    hideUntagged: true,
  })
  let served = ''
  app.get('/openapi.json', async (_request, reply) => {
    // Made once: the routes are fixed when the server listens.
    served ||= JSON.stringify({
      ...app.swagger(),
      servers: [{ url: publicUrl() }],
      'x-service-info': SERVICE_INFO,
    })
    return reply
      .header('cache-control', 'public, max-age=300')
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .serializer((body: string) => body)
      .send(served)
  })
}
