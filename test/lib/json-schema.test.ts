import assert from 'node:assert/strict'
import test from 'node:test'
import { Type as TypeBox } from 'typebox'
import { Type } from '../../src/lib/json-schema.ts'

test('a schema is the one that TypeBox builds, with its members in the same order', () => {
  assert.equal(
    JSON.stringify(everything(Type), null, 1),
    JSON.stringify(everything(TypeBox), null, 1),
  )
})

test('a copy of an optional member is required, as in TypeBox', () => {
  for (const builders of [Type, TypeBox]) {
    const copy = { ...builders.Optional(builders.String()), description: 'a copy' }
    assert.deepEqual(builders.Object({ copy }).required, ['copy'])
  }
})

function everything(of: typeof Type): object {
  const options = { description: 'said of it', examples: ['one'] }
  return of.Object(
    {
      array: of.Array(of.String({ maxLength: 3 }), { maxItems: 2 }),
      boolean: of.Boolean({ default: true }),
      enum: of.Enum(['a', 'b'], options),
      integer: of.Optional(of.Integer({ minimum: 1 })),
      literal: of.Literal('a', options),
      literalNumber: of.Literal(1),
      literalBoolean: of.Literal(false),
      null: of.Null(),
      number: of.Number({ exclusiveMinimum: 0 }),
      object: of.Object({}, { additionalProperties: false }),
      allOptional: of.Object({ only: of.Optional(of.Literal(true)) }),
      record: of.Record(of.String(), of.Number(), options),
      string: of.String({ type: 'integer' }),
      union: of.Optional(of.Union([of.Null(), of.Object({ a: of.Null() })], options)),
    },
    options,
  )
}
