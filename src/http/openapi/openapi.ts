/** The machine-readable description, made from the schemas that validate. */
import type { FastifyInstance, FastifySchema } from 'fastify'
import { isEmail, type OperatorFacts } from '../operator.ts'
import { mountText } from '../pages/encoded.ts'
import { type Described, describeRoutes } from './document.ts'

const OPENAPI_VERSION = '0.1.0'

/** For registries of paid services (draft-payment-discovery-01). */
const serviceInfo = (url: string) => ({
  categories: ['developer-tools'],
  docs: { homepage: `${url}/`, apiReference: `${url}/docs`, llms: `${url}/llms.txt` },
})

/**
 * Must be mounted before the routes that it describes. `/openapi-all.json` has all of them, with examples of answers;
 * `/openapi.json`, which registries and agents read, leaves out those that say `isInWholeOnly`. A document is made at
 * the first request for it, since most services are never asked.
 * @throws Error at the start, for a route below `/api/` that says nothing of itself.
 */
export function mountOpenapi(
  app: FastifyInstance,
  {
    publicUrl,
    notice,
    groups,
    operator,
    edition,
  }: {
    /** The address that clients use, known at the latest when the server listens. */
    publicUrl: () => string
    /** What it says of the server, such as that no real money moves, or nothing. */
    notice: string
    /** What is in the group of each product, by its tag. */
    groups: Record<string, string>
    operator: OperatorFacts
    /** Another number after a reload, when the documents must be made anew. */
    edition: () => number
  },
): void {
  const about: Record<string, string> = { ...GROUPS, ...groups }
  const main: Route[] = []
  const all: Route[] = []
  app.addHook('onRoute', ({ method, url, schema, config }) => {
    const [tag] = schema?.tags ?? []
    if (!schema || tag === undefined) {
      if (url.startsWith('/api/') && !config?.isRefused) throw new Error(`${url} is not described`)
      return
    }
    const { describe } = config ?? {}
    const route = { method, url, tag, describe: describe ?? (() => schema) }
    all.push(route)
    if (!schema.isInWholeOnly) main.push(route)
  })

  serve('/openapi.json', () => ({
    ...documentOf(MAIN, main),
    externalDocs: { description: 'All operations', url: `${publicUrl()}/openapi-all.json` },
    'x-service-info': serviceInfo(publicUrl()),
  }))
  serve('/openapi-all.json', () => documentOf(WHOLE, all))

  function tagsOf(some: Route[]): { name: string; description: string }[] {
    const names = new Set(some.map(({ tag }) => tag))
    return [...names].sort().map((name) => ({ name, description: about[name] ?? '' }))
  }

  function documentOf(info: { title: string; description: string }, some: Route[]): object {
    const routes = some.map(({ describe, ...route }) => ({ ...route, schema: describe() }))
    const { paths, components } = describeRoutes(routes, info === WHOLE)
    return {
      openapi: '3.1.0',
      info: {
        ...info,
        version: OPENAPI_VERSION,
        license: { name: 'MIT', identifier: 'MIT' },
        ...said(operator),
      },
      servers: [{ url: publicUrl(), ...(notice === '' ? {} : { description: notice }) }],
      tags: tagsOf(some),
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

type Route = Omit<Described, 'schema'> & { tag: string; describe: () => FastifySchema }

/** The security schemes that these operations use. */
function schemesOf(routes: Described[]): object {
  const used = routes.flatMap(({ schema }) => (schema.security ?? []).flatMap(Object.keys))
  return Object.fromEntries(
    Object.entries(SECURITY_SCHEMES).filter(([name]) => used.includes(name)),
  )
}

const ABOUT =
  'Temporary, narrowly scoped capabilities, paid over the Lightning network, without accounts. An operation that can answer 429 has a limit: all of its answers then have the headers RateLimit and RateLimit-Policy.'

const WHOLE = { title: 'Mayfly', description: ABOUT }

const MAIN = {
  title: 'Mayfly',
  description: `${ABOUT} This document has the most used operations; /openapi-all.json has all, with examples of answers.`,
}

/** The groups that no product brings. */
const GROUPS = {
  payments: 'The catalogue, and how to buy, extend and poll',
  system: 'Whether the service runs, and whether it can sell',
  simulator: 'The payer of a service that runs on the simulator',
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
