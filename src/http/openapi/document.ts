/**
 * Makes an OpenAPI document of the schemas of the routes, which also validate requests and write answers.
 *
 * Not @fastify/swagger (9.9.3): it makes what this file makes and nothing of `names.ts`. Its document has 540 KB in place
 * of 165, and an agent must be able to read one of 80. It nests the headers of answers that are complete, knows no
 * operation id for each method, and describes a route once, while plans and prices can change.
 */
import type { FastifySchema, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import type { JsonSchema } from '../../lib/json-schema.ts'
import { exampleOf } from './examples.ts'
import { nameParts } from './names.ts'

/** A route that is in the document, by its tag. */
export type Described = {
  method: RouteOptions['method']
  url: string
  schema: FastifySchema
}

type Security = readonly Readonly<Record<string, readonly string[]>>[]
type Content = Record<string, { schema: TSchema | object; example?: unknown }>

declare module 'fastify' {
  interface FastifySchema {
    /** The group in the document. A route without one is not in it. */
    tags?: readonly string[]
    summary?: string
    /** What its summary leaves out: what happens, what it costs, what to do next. */
    description?: string
    /** A method name for generated clients; one for each method where a route has several. */
    operationId?: string | Readonly<Record<string, string>>
    /** It stands in `/openapi-all.json` and not in `/openapi.json`: buyers can do without it. */
    isInWholeOnly?: boolean
    /** Which credentials it takes. Default: none. */
    security?: Security
    /** The media types of the body. Default: JSON. */
    consumes?: readonly string[]
    /** The body where `body` cannot say it: optional, or of several media types. Not validated. */
    requestBody?: { required?: boolean; content: Content }
  }
}

/** `x-name` names it among the shared answers of the document. */
type Answer = {
  'x-name'?: string
  description: string
  headers?: Record<string, object>
  content?: Content
}

/** Methods whose requests have no body that anybody reads. */
const BODILESS = ['GET', 'HEAD', 'OPTIONS']

/** @returns `paths` and `components`, with the named schemas and with what several operations share. */
export function describeRoutes(
  routes: readonly Described[],
  hasExamples: boolean,
): { paths: object; components: object } {
  const paths: Record<string, object> = {}
  for (const { method, url, schema } of routes) {
    for (const name of [method].flat()) {
      const path = url.replaceAll(/:(\w+)/g, '{$1}')
      paths[path] = { ...paths[path], [name.toLowerCase()]: operationOf(name, schema) }
    }
  }
  return nameParts(paths, hasExamples)
}

function operationOf(method: string, schema: FastifySchema) {
  const { tags = [], summary = '', description = '', operationId, security = [] } = schema
  const parameters = [
    ...parametersIn('path', schema.params),
    ...parametersIn('query', schema.querystring),
    ...parametersIn('header', schema.headers),
  ]
  const body = schema.requestBody ?? bodyOf(schema)
  return {
    operationId:
      typeof operationId === 'object' ? (operationId[method] ?? '') : (operationId ?? ''),
    summary,
    description,
    tags,
    security,
    ...extensionsOf(schema),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body && !BODILESS.includes(method) ? { requestBody: body } : {}),
    responses: answersOf((schema.response ?? {}) as Record<string, object>),
  }
}

function extensionsOf(schema: FastifySchema): object {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name.startsWith('x-')))
}

/** What describes a parameter stands beside its schema, where generators look for it. */
function parametersIn(place: 'path' | 'query' | 'header', schema: unknown): object[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schema as JsonSchema
  return Object.entries(properties).map(([name, property]) => {
    const { description, examples, ...rest } = property
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      ...(examples === undefined ? {} : { example: examples[0] }),
      schema: rest,
    }
  })
}

function bodyOf({ body, consumes = ['application/json'] }: FastifySchema): object | null {
  if (!body) return null
  const content = Object.fromEntries(
    consumes.map((type) => [type, { schema: body, example: exampleOf(body as TSchema) }]),
  )
  return { required: true, content }
}

function answersOf(response: Record<string, object>): Record<string, Answer> {
  return Object.fromEntries(
    Object.entries(response).map(([status, declared]) => {
      const { headers = {}, content, ...answer } = answerOf(declared)
      return [
        status,
        {
          ...answer,
          ...(Object.keys(headers).length > 0 ? { headers } : {}),
          ...(content ? { content } : {}),
        },
      ]
    }),
  )
}

/** A declared answer is complete, or only the schema of its JSON; `null` is the schema of no body. */
function answerOf(declared: object): Answer {
  const { description = '', ...schema } = declared as TSchema & Answer & { type?: string }
  if ('content' in schema || 'headers' in schema) return declared as Answer
  if (schema.type === 'null') return { description }
  return { description, content: { 'application/json': { schema: declared } } }
}
