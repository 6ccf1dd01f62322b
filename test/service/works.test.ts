import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import { pino } from 'pino'
import { startWorks } from '../../src/service/works.ts'

test('a stop waits for the work under way, whose timer begins none beside it', async () => {
  const work = Promise.withResolvers<void>()
  let begun = 0
  let turn = (): void => assert.fail('no timer')
  const stop = startWorks(
    [
      {
        everyMs: 1,
        event: 'work.failed',
        work() {
          begun++
          return work.promise
        },
      },
    ],
    {
      log: pino({ level: 'silent' }),
      timer(_ms, next) {
        turn = next
        return () => {
          turn = () => assert.fail('the timer has stopped')
        }
      },
    },
  )
  turn()
  turn()
  assert.equal(begun, 1)
  let hasStopped = false
  const stopped = stop().then(() => {
    hasStopped = true
  })
  for (let i = 0; i < 5; i++) await turnOfLoop()
  assert.equal(hasStopped, false)
  work.resolve()
  await stopped
})

test('work that failed is told of, and has its next turn', async () => {
  const logged: string[] = []
  let begun = 0
  let turn = (): void => assert.fail('no timer')
  const work = async (): Promise<void> => {
    begun++
    throw new Error('the store is away')
  }
  startWorks([{ everyMs: 1, event: 'work.failed', work }], {
    log: pino({ base: null }, { write: (line) => logged.push(line) }),
    timer(_ms, next) {
      turn = next
      return () => undefined
    },
  })
  for (const times of [1, 2]) {
    turn()
    await turnOfLoop()
    assert.equal(begun, times)
  }
  const [first] = logged.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    [logged.length, first?.level, first?.event, first?.reason],
    [2, 50, 'work.failed', 'Error: the store is away'],
  )
})
