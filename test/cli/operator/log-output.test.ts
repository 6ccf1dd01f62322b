import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { onceATurn } from '../../../src/cli/operator/log-output.ts'

test('the lines of one turn are one write, in their order', async () => {
  const written: string[] = []
  const log = onceATurn({ write: (text) => written.push(text) })
  log.write('a\n')
  await Promise.resolve()
  log.write('b\n')
  assert.deepEqual(written, [])
  await turn()
  assert.deepEqual(written, ['a\nb\n'])
  log.write('c\n')
  await turn()
  assert.deepEqual(written, ['a\nb\n', 'c\n'])
})

test('the lines left at the end are written once', async () => {
  const written: string[] = []
  const log = onceATurn({ write: (text) => written.push(text) })
  log.write('the last words\n')
  log.flush()
  log.flush()
  await turn()
  assert.deepEqual(written, ['the last words\n'])
})
