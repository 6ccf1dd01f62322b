/**
 * Builds JSON schemas as TypeBox does, with its types. Its own builders are 370 files, and loading them was a third
 * of the CPU time of a start. These are the ones in use.
 */
import type { Type as TypeBox } from 'typebox'

/** Marks a member that may be missing. No copy of the schema and no document has it. */
const OPTIONAL = Symbol('optional')

type Schema = object

const typed =
  (type: string) =>
  (options?: object): Schema => ({ type, ...options })

const builders = {
  Array: (items: Schema, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: typed('boolean'),
  Enum: (values: readonly unknown[], options?: object) => ({ enum: values, ...options }),
  Integer: typed('integer'),
  Literal: (value: unknown, options?: object) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: typed('null'),
  Number: typed('number'),
  Object(properties: Record<string, Schema>, options?: object) {
    const required = Object.keys(properties).filter(
      (name) => !Object.hasOwn(properties[name] ?? {}, OPTIONAL),
    )
    return {
      type: 'object',
      ...(required.length > 0 ? { required } : {}),
      properties,
      ...options,
    }
  },
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  /** @param _names any text. */
  Record: (_names: Schema, value: Schema, options?: object) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  String: typed('string'),
  Union: (anyOf: readonly Schema[], options?: object) => ({ anyOf, ...options }),
}

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>

export const orNull = <Of extends Parameters<typeof Type.Union>[0][number]>(
  schema: Of,
  options: { description?: string } = {},
) => Type.Union([schema, Type.Null()], options)

type Members = Parameters<typeof Type.Object>[0]

/** An object with no members but these. */
export const only = <Of extends Members>(members: Of) =>
  Type.Object(members, { additionalProperties: false })

/** An object by its name in the documents. */
export const named = <Of extends Members>(name: string, description: string, members: Of) =>
  Type.Object(members, { 'x-schema': name, description })

/** The same with no members but these. */
export const closed = <Of extends Members>(name: string, description: string, members: Of) =>
  Type.Object(members, { 'x-schema': name, additionalProperties: false, description })

/** The members of a schema that are read here: to say what is wrong, to write answers, and to make examples. */
export type JsonSchema = {
  type?: string
  description?: string
  const?: unknown
  enum?: readonly (string | number)[]
  examples?: readonly unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  pattern?: string
  format?: string
  items?: JsonSchema
  anyOf?: readonly JsonSchema[]
  properties?: Record<string, JsonSchema>
  patternProperties?: object
  required?: readonly string[]
}
