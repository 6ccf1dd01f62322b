import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { failedIn, openFailed, openFailures } from '../../src/cli/failures.ts'
import { openPosition, readPosition } from '../../src/cli/position.ts'
import { temporaryFolder } from '../support/folder.ts'

test('the position of a listener is what the last complete line says', () => {
  assert.deepEqual(readPosition(''), { last: null, unanswered: null })
  assert.deepEqual(readPosition('done 7\nsent 8\n'), { last: 8, unanswered: 8 })
  assert.deepEqual(readPosition('done 7\nsent 8\ndone 8\nsent 9'), { last: 8, unanswered: null })
  assert.deepEqual(readPosition('done 7\n\0\0\0\0'), { last: 7, unanswered: null })
})

test('the position of a listener outlives the process, and begins a new file with it', async (t) => {
  const file = join(await temporaryFolder(t), 'hooks.position')
  const first = openPosition(file, 'catch_a')
  assert.equal(first.last(), null)
  first.sent(1)
  first.done(1)
  first.sent(2)
  const second = openPosition(file, 'catch_a')
  assert.deepEqual([second.last(), second.unanswered], [2, 2])
  second.close()
  const third = openPosition(file, 'catch_a')
  assert.deepEqual([third.last(), third.unanswered], [2, null])
  third.close()
  first.close()
})

test('the position and the failures of one inbox are not those of another under the same name', async (t) => {
  const folder = await temporaryFolder(t)
  const [where, failed] = [join(folder, 'hooks.position'), join(folder, 'hooks.failed')]
  const position = openPosition(where, 'catch_a')
  const failures = openFailures(failed, 'catch_a')
  position.sent(7)
  failures.failed(7)
  position.close()
  failures.close()
  assert.equal(openFailed(failed, 'catch_b'), null)
  const next = openPosition(where, 'catch_b')
  const none = openFailures(failed, 'catch_b')
  assert.deepEqual([next.last(), next.unanswered, none.count()], [null, null, 0])
  next.close()
  none.close()
  assert.equal(readFileSync(failed, 'utf8'), 'inbox catch_b\n')
})

test('a position that an older version wrote still counts', async (t) => {
  const file = join(await temporaryFolder(t), 'hooks.position')
  writeFileSync(file, 'done 7\n')
  const position = openPosition(file, 'catch_a')
  assert.equal(position.last(), 7)
  position.close()
})

test('what has failed is remembered in order, once, until it is struck out', async (t) => {
  const file = join(await temporaryFolder(t), 'hooks.failed')
  const failures = openFailures(file, 'catch_a')
  for (const sequence of [9, 3, 9, 11]) failures.failed(sequence)
  // A replay strikes out while the listener goes on.
  const replay = openFailed(file, 'catch_a')
  assert.deepEqual(replay?.sequences, [3, 9, 11])
  replay.failures.over(9)
  failures.failed(12)
  failures.close()
  replay.failures.close()
  assert.deepEqual(failedIn(readFileSync(file, 'utf8'), 'catch_a'), [3, 11, 12])
})

test('a line that was cut short costs what has failed before and after it nothing', async (t) => {
  const file = join(await temporaryFolder(t), 'hooks.failed')
  const failures = openFailures(file, 'catch_a')
  failures.failed(3)
  failures.close()
  appendFileSync(file, 'failed 4')
  const next = openFailures(file, 'catch_a')
  next.failed(5)
  next.close()
  const known = failedIn(readFileSync(file, 'utf8'), 'catch_a')
  assert.equal(known.includes(3) && known.includes(5), true)
})
