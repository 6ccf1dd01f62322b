/** Validates requests with the schemas that also make the types and the OpenAPI document. */
import { createRequire } from 'node:module'
import type { FastifySchemaCompiler, FastifyServerOptions } from 'fastify'
import type { TSchema } from 'typebox'
import type { Validator } from 'typebox/schema'
import { isObject, MAX_JSON } from '../lib/json.ts'
import type { JsonSchema } from '../lib/json-schema.ts'
import { oncePer } from '../lib/once-per.ts'
import type { Fault, Phrase } from '../protocol/errors.ts'

/** The error phrases of a route for a body that is no JSON, and for one that its schema refuses. */
export type InvalidPhrases = { json?: Phrase; body: Phrase }

/**
 * Bodies are checked as they are. Query values arrive as text, so integers of the schema are parsed. Text that
 * is not an integer stays text and is refused. Headers are checked by who reads them, because each has its own error.
 */
const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  if (httpPart === 'headers') return () => true
  const integers = httpPart === 'querystring' ? integerProperties(schema) : []
  return (value: unknown) => {
    const read = integers.length > 0 ? withIntegers(value, integers) : value
    // Compiled for the first request: most routes of a service wait long for theirs, or for ever.
    if (validatorOf(schema).Check(read)) return { value: read }
    return {
      error: Object.assign(new Error('refused by its schema'), { fault: faultIn(schema, read) }),
    }
  }
}

function integerProperties(schema: TSchema): string[] {
  const properties = 'properties' in schema ? (schema.properties as Record<string, TSchema>) : {}
  return Object.entries(properties)
    .filter(([, property]) => 'type' in property && property.type === 'integer')
    .map(([name]) => name)
}

function withIntegers(value: unknown, names: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  const read: Record<string, unknown> = { ...value }
  for (const name of names) {
    const text = read[name]
    const isWritten = typeof text === 'string' && /^(?:0|-?[1-9][0-9]{0,15})$/.test(text)
    if (isWritten && Number.isSafeInteger(Number(text))) read[name] = Number(text)
  }
  return read
}

// What Fastify makes of the schemas of routes. Without these it loads two libraries of its own at each start.

/** Its types are those of its own libraries. */
export const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    buildSerializer: () => compileSerializer,
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>

// Validators of schemas. Compiling one takes longer than a request, so a process compiles each schema once.

/** The compiler is loaded for the first of them: it is 235 files, which a start would wait for. */
const require = createRequire(import.meta.url)
const compiled = oncePer((schema: TSchema) => {
  const { Compile } = require('typebox/schema') as typeof import('typebox/schema')
  return Compile(schema)
})

/** Its validator, compiled when it is first asked for. */
export const validatorOf = <Schema extends TSchema>(schema: Schema): Validator<Schema> =>
  compiled(schema) as Validator<Schema>

// Says what is wrong with a refused value: the name of a member and what it must be, never what was sent.

/** What is said of a body that is no JSON, or more than is read. */
export const NO_JSON: Fault = {
  expected: `JSON with each member once, and at most ${MAX_JSON.signs} of { } [ ] , :`,
}

const isFine = (schema: JsonSchema, value: unknown): boolean =>
  validatorOf(schema as TSchema).Check(value)

/** The fault of an object that its schema refuses. */
export function faultIn(schema: object, value: unknown): Fault {
  if (value === undefined) return NO_JSON
  if (!isObject(value)) return { expected: 'an object' }
  const { properties = {}, required = [] } = meant(schema, value)
  for (const [name, property] of Object.entries(properties)) {
    const isThere = Object.hasOwn(value, name)
    if (isThere ? isFine(property, value[name]) : !required.includes(name)) continue
    return { field: name, expected: inWords(property), ...faultOfItem(property, value[name]) }
  }
  // The name of a member that nobody knows is the client's own text.
  const names = Object.keys(properties)
  return { expected: names.length === 0 ? 'an empty object' : `only ${listed(names, 'and')}` }
}

/** Of several schemas, the one of which the value has a required member. */
function meant(schema: JsonSchema, value: object): JsonSchema {
  const { anyOf = [schema] } = schema
  const isMeant = ({ required = [] }: JsonSchema) =>
    required.some((name) => Object.hasOwn(value, name))
  return anyOf.find(isMeant) ?? anyOf[0] ?? schema
}

/** The fault of the first item of a list that is refused; null if the list itself is. */
function faultOfItem({ items, maxItems = 0 }: JsonSchema, value: unknown): Fault | null {
  if (!items || !Array.isArray(value) || value.length > maxItems) return null
  const refused = value.find((item) => !isFine(items, item))
  return faultIn(items, refused ?? null)
}

/** What a value must be: `20 to 604800`, `at most 80 characters`, `spark, standard or long`. */
export function inWords(schema: object): string {
  const { type, description, minimum, maximum, minLength, maxLength, pattern, ...rest } =
    schema as JsonSchema
  if (rest.enum) return listed(rest.enum, 'or')
  if (type === 'boolean') return 'true or false'
  if (rest.format === 'date-time') return 'a time with its offset, such as 2026-01-31T18:00:00Z'
  // Nobody reads a pattern or a form at a glance, so a schema that has one describes it.
  const isForm = pattern !== undefined || type === undefined || type === 'object'
  if (isForm && description !== undefined) return description
  if (type === 'integer') return range(minimum, maximum) || 'an integer'
  if (type === 'array') return range(undefined, rest.maxItems) || 'an array'
  const length = range(minLength, maxLength)
  return length === '' ? 'a string' : `${length} characters`
}

function range(from: number | undefined, to: number | undefined): string {
  if (from !== undefined && to !== undefined) return `${from} to ${to}`
  if (from !== undefined) return `at least ${from}`
  return to === undefined ? '' : `at most ${to}`
}

function listed(names: readonly (string | number)[], link: 'and' | 'or'): string {
  const last = String(names.at(-1))
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} ${link} ${last}`
}

// Writes answers by their schemas: what a schema does not declare stays out, so that no field of a row gets into
// an answer by mistake, and what it requires must be there. It follows what the builders of TypeBox make that are in
// use here; an object of which a schema says no more than that is not written.

export const compileSerializer =
  ({ schema }: { schema: TSchema }) =>
  (value: unknown): string =>
    JSON.stringify(declared(schema as JsonSchema, value))

/** What its schema declares of a value. @throws TypeError if there is not all of it. */
function declared(schema: JsonSchema, value: unknown): unknown {
  const { type, properties, required = [], patternProperties, items, anyOf } = schema
  const isComposed = typeof value === 'object' && value !== null
  if (anyOf && isComposed) {
    const fitting = anyOf.find((one) => validatorOf(one as TSchema).Check(value))
    if (!fitting) throw new TypeError('the answer fits no schema of its union')
    return declared(fitting, value)
  }
  if (items && Array.isArray(value)) return value.map((item) => declared(items, item))
  if (properties && isObject(value)) {
    const written: Record<string, unknown> = {}
    for (const [name, property] of Object.entries(properties)) {
      const member = value[name]
      if (member !== undefined) written[name] = declared(property, member)
      else if (required.includes(name)) {
        throw new TypeError(`the answer lacks its member ${name}`)
      }
    }
    return written
  }
  if (type === 'object' ? !patternProperties || !isObject(value) : type === 'array' || isComposed) {
    throw new TypeError('the answer is not composed as it declares')
  }
  return value
}
