/** Validates requests with the schemas that also make the types and the OpenAPI document. */
import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import type { Phrase } from './errors.ts'
import { createFaultFinder } from './fault.ts'
import { validatorOf } from './validator.ts'

/** The error phrases for a body and for a query that the schema refuses. */
export type InvalidPhrases = { body?: Phrase; query?: Phrase }

/**
 * Bodies are checked as they are. Query values arrive as text, so integers of the schema are parsed. Text that
 * is not an integer stays text and is refused.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const faultIn = createFaultFinder(schema)
  const integers = httpPart === 'querystring' ? integerProperties(schema) : []
  return (value: unknown) => {
    const read = integers.length > 0 ? withIntegers(value, integers) : value
    // Compiled for the first request: most routes of a service wait long for theirs, or for ever.
    if (validatorOf(schema).Check(read)) return { value: read }
    return { error: Object.assign(new Error('refused by its schema'), { fault: faultIn(read) }) }
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
