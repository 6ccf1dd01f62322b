import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import { compileSerializer } from '../../src/http/serialization.ts'

test('the schema of an answer is compiled once, for the first answer', () => {
  let reads = 0
  const schema = {
    get type() {
      reads++
      return 'string'
    },
  }
  const serialize = compileSerializer({ schema, method: 'GET', url: '/' })
  assert.equal(reads, 0)
  assert.equal(serialize('first'), '"first"')
  const readsOfCompiling = reads
  assert.ok(readsOfCompiling > 0)
  assert.equal(serialize('second'), '"second"')
  assert.equal(reads, readsOfCompiling)
})

test('an answer has nothing that its schema does not name', () => {
  const schema = Type.Object({ id: Type.String() })
  const serialize = compileSerializer({ schema, method: 'GET', url: '/' })
  assert.equal(serialize({ id: 'a', secret: 'b' }), '{"id":"a"}')
})
