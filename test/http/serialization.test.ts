import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type TSchema, Type } from 'typebox'
import { compileSerializer } from '../../src/http/validation.ts'

const written = (schema: TSchema, value: unknown): unknown =>
  JSON.parse(compileSerializer({ schema })(value))

suite('answers by their schemas', () => {
  const Inbox = Type.Object({
    id: Type.String(),
    note: Type.Optional(Type.String()),
    plan: Type.Object({ price: Type.Integer() }),
    events: Type.Array(Type.Object({ path: Type.String() })),
    owner: Type.Union([Type.Null(), Type.Object({ name: Type.String() })]),
    headers: Type.Record(Type.String(), Type.String()),
  })
  const inbox = {
    id: 'a',
    plan: { price: 1 },
    events: [{ path: '/1' }, { path: '/2' }],
    owner: { name: 'b' },
    headers: { any: 'name' },
  }

  test('a field that the schema of an answer does not declare is left out, at every depth', () => {
    const row = {
      ...inbox,
      token_hash: 'secret',
      plan: { price: 1, token_hash: 'secret' },
      events: [{ path: '/1', token_hash: 'secret' }, { path: '/2' }],
      owner: { name: 'b', token_hash: 'secret' },
    }
    assert.deepEqual(written(Inbox, row), inbox)
  })

  test('the members of an answer are in the order of its schema', () => {
    const schema = Type.Object({ a: Type.Integer(), b: Type.Integer() })
    assert.equal(compileSerializer({ schema })({ b: 2, a: 1 }), '{"a":1,"b":2}')
  })

  test('an answer without an optional member, or with null for one that may be, is written', () => {
    assert.deepEqual(written(Inbox, { ...inbox, owner: null }), { ...inbox, owner: null })
    assert.deepEqual(written(Inbox, { ...inbox, note: undefined }), inbox)
    assert.deepEqual(written(Inbox, { ...inbox, note: 'n' }), { ...inbox, note: 'n' })
  })

  test('an answer that lacks a required member, or has another shape, is an error and not written', () => {
    const { id: _id, ...rest } = inbox
    for (const value of [
      ...[rest, null, 'text', { ...inbox, plan: null }, { ...inbox, events: {} }],
      ...[
        { ...inbox, events: [null] },
        { ...inbox, owner: { other: 'b' } },
      ],
    ]) {
      assert.throws(() => written(Inbox, value), TypeError)
    }
  })

  test('an answer of one of several kinds is written by the schema that it fits', () => {
    const schema = Type.Union([
      Type.Object({ kind: Type.Literal('a'), one: Type.String() }),
      Type.Object({ kind: Type.Literal('b'), two: Type.Optional(Type.String()) }),
    ])
    assert.deepEqual(written(schema, { kind: 'b', one: 'x', two: 'y' }), { kind: 'b', two: 'y' })
    assert.deepEqual(written(schema, { kind: 'a', one: 'x', two: 'y' }), { kind: 'a', one: 'x' })
    assert.throws(() => written(schema, { kind: 'c', one: 'x' }), TypeError)
  })

  test('no object is written of which the schema says more than the writer follows', () => {
    for (const more of [{ $ref: 'x' }, { oneOf: [] }, { allOf: [] }, { type: 'object' }, {}]) {
      const schema = { type: 'array', items: more } as unknown as TSchema
      assert.throws(() => compileSerializer({ schema })([{ token_hash: 'secret' }]), TypeError)
    }
  })
})
