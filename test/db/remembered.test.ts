import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createRemembered } from '../../src/db/remembered.ts'

suite('remembered facts', () => {
  test('remembered facts are read once, until they are forgotten', async () => {
    const read: string[] = []
    const remembered = createRemembered(async (id) => {
      read.push(id)
      return { id }
    })
    assert.deepEqual(await remembered.of('a'), { id: 'a' })
    assert.deepEqual(await remembered.of('b'), { id: 'b' })
    assert.deepEqual(await remembered.of('a'), { id: 'a' })
    assert.deepEqual(read, ['a', 'b'])
    remembered.forget('a')
    await remembered.of('a')
    assert.deepEqual(read, ['a', 'b', 'a'])
  })

  test('remembered facts of a row that does not exist yet are found once it does', async () => {
    let row: object | null = null
    const remembered = createRemembered(async () => row)
    assert.equal(await remembered.of('a'), null)
    row = { exists: true }
    assert.equal(await remembered.of('a'), row)
  })
})
