import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lazily } from '../../src/lib/lazily.ts'

test('what is made at the first call is made once, however many ask, and again only after a failure', async () => {
  let tries = 0
  const made = lazily(async () => {
    tries++
    if (tries === 1) throw new Error('EMFILE')
    return { tries }
  })
  const failed = await Promise.allSettled([made(), made()])
  assert.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(tries, 1)
  const [one, other] = await Promise.all([made(), made()])
  assert.equal(one, other)
  assert.equal(tries, 2)
})
