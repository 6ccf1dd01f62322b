/**
 * Writes answers by their schemas: what a schema does not declare stays out, so that no field of a row gets
 * into an answer by mistake, and what it requires must be there. It follows what `type.ts` makes; a schema
 * that says more is refused at the start.
 */
import type { TSchema } from 'typebox'
import { oncePer } from '../lib/once-per.ts'
import { validatorOf } from './validator.ts'

/** What of a value is written. */
type Declared = (value: unknown) => unknown

type Schema = {
  type?: string
  properties?: Record<string, Schema>
  required?: readonly string[]
  patternProperties?: Record<string, Schema>
  items?: Schema
  anyOf?: readonly Schema[]
}

export const compileSerializer = ({ schema }: { schema: TSchema }): ((value: unknown) => string) =>
  serializerOf(schema)

/** Made of a schema at its first answer: a service has many routes, and most of their answers are the same errors. */
const serializerOf = oncePer((schema: TSchema) => {
  refuseUnknown(schema)
  let declared: Declared | null = null
  return (value: unknown): string => {
    declared ??= declaredBy(schema as Schema)
    return JSON.stringify(declared(value))
  }
})

function declaredBy(schema: Schema): Declared {
  const { type, properties = {}, patternProperties, required = [], items, anyOf } = schema
  if (anyOf) return ofUnion(anyOf)
  if (type === 'array' && items) {
    const item = declaredBy(items)
    return (value) => {
      if (!Array.isArray(value))
        throw new TypeError('the answer has no array where it declares one')
      return item === asItIs ? value : value.map(item)
    }
  }
  if (type !== 'object' || patternProperties) return asItIs
  const members = Object.entries(properties).map(([name, property]) => ({
    ...{ name, declared: declaredBy(property) },
    isRequired: required.includes(name),
  }))
  return (value) => {
    if (typeof value !== 'object' || value === null) {
      throw new TypeError('the answer has no object where it declares one')
    }
    const written: Record<string, unknown> = {}
    for (const { name, declared, isRequired } of members) {
      const member = (value as Record<string, unknown>)[name]
      if (member !== undefined) written[name] = declared(member)
      else if (isRequired) throw new TypeError(`the answer lacks its member ${name}`)
    }
    return written
  }
}

/** The first schema that the value fits, whatever else is in the value. */
function ofUnion(schemas: readonly Schema[]): Declared {
  const branches = schemas.map((schema) => ({
    declared: declaredBy(schema),
    fits: validatorOf(schema as TSchema),
  }))
  if (branches.every(({ declared }) => declared === asItIs)) return asItIs
  return (value) => {
    const branch = branches.find(({ fits }) => fits.Check(value))
    if (!branch) throw new TypeError('the answer fits no schema of its union')
    return branch.declared(value)
  }
}

const asItIs: Declared = (value) => value

/** Keywords of JSON Schema that would say more of what is written. */
const NOT_FOLLOWED = ['$ref', 'allOf', 'oneOf', 'not', 'if', 'prefixItems', 'dependentSchemas']

/** @throws Error for a schema that would not be followed. */
function refuseUnknown(schema: object): void {
  for (const [keyword, value] of Object.entries(schema)) {
    const isOpen = keyword === 'additionalProperties' && value !== false
    if (isOpen || NOT_FOLLOWED.includes(keyword)) {
      throw new Error(`answers with ${keyword} in their schema cannot be written`)
    }
    const inner = keyword === 'properties' || keyword === 'anyOf' ? Object.values(value) : []
    for (const part of keyword === 'items' ? [value] : inner) refuseUnknown(part)
  }
}
