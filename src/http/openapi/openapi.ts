/** The machine-readable description, made from the schemas that validate. */
import type { FastifyInstance, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import { isEmail, type OperatorFacts } from '../operator.ts'
import { mountText } from '../pages/encoded.ts'
import { SHARED_SCHEMAS } from '../schemas.ts'
import { type Described, describeRoutes } from './document.ts'

const OPENAPI_VERSION = '0.1.0'

/** For registries of paid services (draft-payment-discovery-01). */
const serviceInfo = (url: string) => ({
  categories: ['developer-tools'],
  docs: { homepage: `${url}/`, apiReference: `${url}/docs`, llms: `${url}/llms.txt` },
})

/**
 * Must be mounted before the routes that it describes: those that say `isLinked` in a document for their tag,
 * which the main one links, and all others in the main one. A document is made at the first request for it,
 * since most services are never asked, and again when `edition` is another number.
 * @param schemas the products' schemas by their names in the document.
 * @throws Error at the start, for a route below `/api/` that says nothing of itself.
 */
export function mountOpenapi(
  app: FastifyInstance,
  publicUrl: () => string,
  {
    schemas,
    notice,
    operator,
    edition,
  }: {
    schemas: Record<string, TSchema>
    notice: string
    operator: OperatorFacts
    edition: () => number
  },
): void {
  const named = { ...schemas, ...SHARED_SCHEMAS }
  const main: Route[] = []
  const linked = new Map<string, Route[]>()
  app.addHook('onRoute', ({ method, url, schema, config }) => {
    const [tag] = schema?.tags ?? []
    if (!schema || tag === undefined) {
      if (url.startsWith('/api/') && !config?.isRefused) throw new Error(`${url} is not described`)
      return
    }
    const { describe } = config ?? {}
    const route = describe ? { method, url, describe } : { method, url, describe: () => schema }
    if (!schema.isLinked) main.push(route)
    else if (linked.get(tag)?.push(route) === undefined) {
      const routes = [route]
      linked.set(tag, routes)
      serve(pathOf(tag), () => documentOf(infoOf(tag), routes))
    }
  })

  serve('/openapi.json', () => ({
    ...documentOf(INFO, main),
    tags: [...linked.keys()].sort().map((tag) => ({
      name: tag,
      description: infoOf(tag).description,
      externalDocs: { url: publicUrl() + pathOf(tag) },
    })),
    'x-service-info': serviceInfo(publicUrl()),
  }))

  function documentOf(info: { title: string; description: string }, some: Route[]): object {
    const routes = some.map(({ describe, ...route }) => ({ ...route, schema: describe() }))
    const { paths, components } = describeRoutes(routes, named)
    return {
      openapi: '3.1.0',
      info: { ...info, version: OPENAPI_VERSION, license: { name: 'MIT' }, ...said(operator) },
      servers: [{ url: publicUrl(), ...(notice === '' ? {} : { description: notice }) }],
      paths,
      components: { securitySchemes: schemesOf(routes), ...components },
    }
  }

  /** The routes are fixed when the server listens. */
  function serve(path: string, document: () => object): void {
    const text = (): string => JSON.stringify(document())
    mountText(app, { path, type: 'application/json; charset=utf-8', text, edition })
  }
}

/** The members of `info` that OpenAPI has for it. */
const said = ({ termsUrl, contact }: OperatorFacts): object => ({
  ...(termsUrl === null ? {} : { termsOfService: termsUrl }),
  ...(contact === null
    ? {}
    : { contact: isEmail(contact) ? { email: contact } : { url: contact } }),
})

type Route = Omit<Described, 'schema'> & { describe: () => FastifySchema }

const pathOf = (tag: string): string => `/openapi-${tag}.json`

const infoOf = (tag: string): { title: string; description: string } => ({
  title: `Mayfly, ${tag}`,
  description: `The operations of ${tag} that are not in /openapi.json.`,
})

/** The security schemes that these operations use. */
function schemesOf(routes: Described[]): object {
  const used = routes.flatMap(({ schema }) => (schema.security ?? []).flatMap(Object.keys))
  return Object.fromEntries(
    Object.entries(SECURITY_SCHEMES).filter(([name]) => used.includes(name)),
  )
}

const INFO = {
  title: 'Mayfly',
  description:
    'Temporary, narrowly scoped capabilities, paid over the Lightning network, without accounts. More operations are in the documents that `tags` links. What took from a limit has RateLimit and RateLimit-Policy in its answer; a 429 stands where there is one.',
}

const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A token of the capability' },
  payment: {
    type: 'http',
    scheme: 'Payment',
    description: 'HTTP Payment Authentication with a Lightning charge',
  },
  l402: { type: 'http', scheme: 'L402', description: 'A macaroon and a preimage' },
}
