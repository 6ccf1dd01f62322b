/** The machine-readable description, made from the schemas that validate. */
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { COMPILERS } from './compilers.ts'
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
 * Must be mounted before the routes that it describes. The document is made at the first request for it: most
 * services are never asked, and the library that makes it is large.
 * @param schemas the products' schemas by their names in the document.
 */
export function mountOpenapi(
  app: FastifyInstance,
  publicUrl: () => string,
  schemas: Record<string, TSchema>,
): void {
  const named = {
    ...schemas,
    Error: ErrorSchema,
    PlanSelection,
    PaymentQuote,
    PaymentAuthChallenge,
    L402Challenge,
  }
  const routes: Described[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (schema?.tags) routes.push({ method, url, schema })
  })
  let served: Promise<string> | null = null
  app.get('/openapi.json', async (_request, reply) => {
    // Made once: the routes are fixed when the server listens.
    served ??= describe(routes).then(
      (document) =>
        JSON.stringify({
          ...nameSchemas(document, named),
          servers: [{ url: publicUrl() }],
          'x-service-info': SERVICE_INFO,
        }),
      (error) => {
        served = null
        throw error
      },
    )
    return reply
      .header('cache-control', 'public, max-age=300')
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .serializer((body: string) => body)
      .send(await served)
  })
}

type Described = Pick<RouteOptions, 'method' | 'url' | 'schema'>

/** The library reads routes as they are mounted, so they are mounted once more, on a server of its own. */
async function describe(routes: Described[]): Promise<object> {
  const [{ default: Fastify }, { default: swagger }] = await Promise.all([
    import('fastify'),
    import('@fastify/swagger'),
  ])
  const app = Fastify({ schemaController: COMPILERS })
  await app.register(swagger, { openapi: OPENAPI })
  for (const route of routes) app.route({ ...route, handler: async () => null })
  await app.ready()
  return app.swagger()
}

const OPENAPI = {
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
} as const
