/** The machine-readable description, made from the schemas that validate. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type { TSchema } from 'typebox'
import { nameSchemas } from './openapi-names.ts'
import {
  ErrorSchema,
  L402Challenge,
  PaymentAuthChallenge,
  PaymentQuote,
  PlanSelection,
} from './schemas.ts'

const OPENAPI_VERSION = '0.1.0'

/** For registries of paid services (draft-payment-discovery-01). */
const SERVICE_INFO = {
  categories: ['developer-tools'],
  docs: { apiReference: '/openapi.json', llms: '/llms.txt' },
}

/**
 * Must be mounted before the routes that it describes.
 * @param schemas the products' schemas by their names in the document.
 */
export async function mountOpenapi(
  app: FastifyInstance,
  publicUrl: () => string,
  schemas: Record<string, TSchema>,
): Promise<void> {
  const named = {
    ...schemas,
    Error: ErrorSchema,
    PlanSelection,
    PaymentQuote,
    PaymentAuthChallenge,
    L402Challenge,
  }
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
      ...nameSchemas(app.swagger(), named),
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
