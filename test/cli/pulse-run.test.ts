/** How long `mayfly pulse run` waits for a service that hangs, in a time of the test. */

import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type TellEnd, tellOfRun } from '../../src/cli/pulse/run.ts'
import { aUser } from '../support/user.ts'

test('a run ends ten seconds after its command, though the telling of its start still hangs', async (t) => {
  const { asked, tell, err, afterSeconds } = await hanging(t)
  await afterSeconds(4)
  let isOver = false
  const ending = tell(0).then(() => {
    isOver = true
  })
  await afterSeconds(9.999)
  assert.equal(isOver, false)
  await afterSeconds(0.001)
  assert.equal(isOver, true)
  await ending
  assert.deepEqual(asked, ['start', 'exit'])
  assert.match(err(), /the ping failed\. http:.* did not accept it within 10 seconds\.\n$/)
})

test('the end of a long run is told at once, though the telling of its start had hung', async (t) => {
  const { asked, tell, afterSeconds } = await hanging(t)
  await afterSeconds(60)
  const ending = tell(3)
  await afterSeconds(0)
  assert.deepEqual(asked, ['start', 'exit'])
  await afterSeconds(10)
  await ending
})

/** A run of a saved monitor whose service answers nothing. */
async function hanging(t: TestContext) {
  const { cli } = await aUser(t, { beat: 'pulse' })
  const asked: string[] = []
  t.mock.method(globalThis, 'fetch', async (input: string | URL, init?: RequestInit) => {
    asked.push(new URL(input).pathname.split('/')[3] === 'start' ? 'start' : 'exit')
    return new Promise((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
    })
  })
  let err = ''
  t.mock.method(process.stderr, 'write', (text: string) => {
    err += text
    return true
  })
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  t.mock.method(performance, 'now', () => Date.now())
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    const over = new AbortController()
    setTimeout(() => over.abort(new DOMException('over', 'TimeoutError')), ms)
    return over.signal
  })
  const { XDG_DATA_HOME } = process.env
  process.env.XDG_DATA_HOME = dirname(cli.folder)
  t.after(() => {
    if (XDG_DATA_HOME === undefined) delete process.env.XDG_DATA_HOME
    else process.env.XDG_DATA_HOME = XDG_DATA_HOME
  })
  const tell: TellEnd = tellOfRun('beat', { isPingOnly: false, isDebug: false })
  return {
    asked,
    tell,
    err: () => err,
    async afterSeconds(seconds: number) {
      for (let left = seconds * 1000; left >= 0; left -= 500) {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
        t.mock.timers.tick(Math.min(left, 500))
      }
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    },
  }
}
