import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type as Library } from 'typebox'
import { Type } from '../../src/http/type.ts'

const ALL: Record<string, (type: typeof Type) => unknown> = {
  Array: (type) => type.Array(type.String(), { minItems: 1, description: 'some' }),
  Boolean: (type) => type.Boolean({ description: 'some' }),
  Enum: (type) => type.Enum(['a', 'b'], { description: 'some' }),
  Integer: (type) => type.Integer({ minimum: 1 }),
  'Literal of a text': (type) => type.Literal('a', { description: 'some' }),
  'Literal of a number': (type) => type.Literal(402),
  'Literal of a truth': (type) => type.Literal(true),
  Null: (type) => type.Null({ description: 'some' }),
  Number: (type) => type.Number({ exclusiveMinimum: 0 }),
  Object: (type) =>
    type.Object(
      { a: type.String(), b: type.Optional(type.Integer()), c: type.Object({}) },
      { additionalProperties: false, description: 'some' },
    ),
  'Object of optional members': (type) => type.Object({ a: type.Optional(type.String()) }),
  'Object of a schema that is optional elsewhere': (type) => {
    const schema = type.String()
    return type.Array(
      type.Union([type.Object({ a: type.Optional(schema) }), type.Object({ a: schema })]),
    )
  },
  Record: (type) => type.Record(type.String(), type.String()),
  String: (type) => type.String({ minLength: 1, pattern: '^a' }),
  Union: (type) => type.Union([type.Null(), type.String()], { description: 'some' }),
}

for (const [name, schemaOf] of Object.entries(ALL)) {
  test(`the schema builder makes the library's schema: ${name}`, () => {
    // As text, so that the order of the members counts: documents are made of them.
    assert.equal(
      JSON.stringify(schemaOf(Type)),
      JSON.stringify(schemaOf(Library as unknown as typeof Type)),
    )
  })
}
