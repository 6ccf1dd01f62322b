/** The machine-readable description, made from the schemas that validate. */
import type { FastifyInstance } from 'fastify'
import type { TSchema } from 'typebox'
import { type Described, describeRoutes } from './openapi-document.ts'
import { SHARED_SCHEMAS } from './schemas.ts'
import { mountText } from './text.ts'

const OPENAPI_VERSION = '0.1.0'

/** For registries of paid services (draft-payment-discovery-01). */
const serviceInfo = (url: string) => ({
  categories: ['developer-tools'],
  docs: { homepage: `${url}/`, apiReference: `${url}/docs`, llms: `${url}/llms.txt` },
})

/** A group of operations with a document of its own, which the main one links. */
export type OwnDocument = { tag: string; path: `/${string}.json`; title: string; about: string }

/**
 * Must be mounted before the routes that it describes. A document is made at the first request for it, since
 * most services are never asked.
 * @param schemas the products' schemas by their names in the document.
 */
export function mountOpenapi(
  app: FastifyInstance,
  publicUrl: () => string,
  {
    schemas,
    own,
    notice,
  }: { schemas: Record<string, TSchema>; own: readonly OwnDocument[]; notice: string },
): void {
  const named = { ...schemas, ...SHARED_SCHEMAS }
  const routes: Described[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (schema?.tags) routes.push({ method, url, schema })
  })
  const isOwn =
    (tag: string) =>
    ({ schema }: Described) =>
      schema.tags?.includes(tag) ?? false

  serve('/openapi.json', () => ({
    ...documentOf(
      INFO,
      routes.filter((route) => !own.some(({ tag }) => isOwn(tag)(route))),
    ),
    tags: own.map(({ tag, path, about }) => ({
      name: tag,
      description: about,
      externalDocs: { url: publicUrl() + path },
    })),
    'x-service-info': serviceInfo(publicUrl()),
  }))
  for (const { tag, path, title, about } of own) {
    serve(path, () => documentOf({ title, description: about }, routes.filter(isOwn(tag))))
  }

  function documentOf(info: { title: string; description: string }, some: Described[]): object {
    const { paths, components } = describeRoutes(some, named)
    return {
      openapi: '3.1.0',
      info: { ...info, version: OPENAPI_VERSION, license: { name: 'MIT' } },
      servers: [{ url: publicUrl(), ...(notice === '' ? {} : { description: notice }) }],
      paths,
      components: { securitySchemes: schemesOf(some), ...components },
    }
  }

  /** Made once: the routes are fixed when the server listens. */
  function serve(path: string, document: () => object): void {
    const text = (): string => JSON.stringify(document())
    mountText(app, { path, type: 'application/json; charset=utf-8', text })
  }
}

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
    'Temporary, narrowly scoped capabilities, paid over the Lightning network, without accounts.',
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
