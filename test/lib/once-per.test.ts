import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oncePer } from '../../src/lib/once-per.ts'

test('what is made of an object is made once, also if it is nothing, and anew for another one that is equal', () => {
  const made: object[] = []
  const make = oncePer((key: object) => {
    made.push(key)
    return undefined
  })
  const [one, other] = [{}, {}]
  for (const key of [one, one, other, one]) make(key)
  assert.equal(made.length, 2)
  assert.ok(made[0] === one && made[1] === other)
})

test('what could not be made of an object is tried again', () => {
  const make = oncePer((_key: object): number => {
    throw new Error('not now')
  })
  const key = {}
  for (let tries = 0; tries < 2; tries++) assert.throws(() => make(key), /not now/)
})
