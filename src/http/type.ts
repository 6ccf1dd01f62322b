/**
 * TypeBox's builders of schemas, for the kinds that this service has. They make the same JSON Schema and have
 * the same types; the library's own bring a parser for TypeScript and its whole type system along, at every
 * start.
 */
import type * as TypeBox from 'typebox'
import type { TSchema } from 'typebox'

type Builders = Pick<
  typeof TypeBox.Type,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
>

/** Marks a member as one that may be missing. No part of the schema, so nobody sees it. */
const OPTIONAL = Symbol('optional')

/** What a builder makes of its arguments, untyped: `Builders` has the types. */
const builders = {
  Array: (items: TSchema, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly unknown[], options?: object) => ({ enum: values, ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Literal: (value: unknown, options?: object) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object: (properties: Record<string, object>, options?: object) => {
    const required = Object.keys(properties).filter((name) => !isOptional(properties[name]))
    return {
      type: 'object',
      ...(required.length > 0 ? { required } : {}),
      properties,
      ...options,
    }
  },
  // A copy, so that the same schema can be required elsewhere.
  Optional: (schema: object) =>
    Object.defineProperty({ ...schema }, OPTIONAL, { value: true, enumerable: false }),
  Record: (_key: TSchema, values: TSchema, options?: object) => ({
    type: 'object',
    patternProperties: { '^.*$': values },
    ...options,
  }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly TSchema[], options?: object) => ({ anyOf, ...options }),
}

const isOptional = (schema: object | undefined): boolean =>
  schema !== undefined && OPTIONAL in schema

export const Type = builders as unknown as Builders
