import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import {
  acceptClock,
  type DeletionClock,
  openDeletionClock,
  timesIn,
} from '../../src/db/deletion-clock.ts'
import { openStore } from '../../src/db/open.ts'
import { NOTHING_IS_OVER } from '../../src/lib/clock.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { DAY, HOUR, type ManualClock, manualClock, SECOND } from '../support/shop.ts'

const MINUTE = 60 * SECOND
const BEAT = 15 * SECOND
const YEAR = 365 * DAY

const JUMPS = [6 * MINUTE, HOUR, DAY, 30 * DAY, YEAR, 50 * YEAR].flatMap((ms) => [ms, -ms])

for (const [engine, open] of [
  [
    'SQLite',
    async (t: TestContext) =>
      openStore({ kind: 'sqlite', file: join(await temporaryFolder(t), 'mayfly.db') }),
  ],
  ['PostgreSQL', async () => openStore({ kind: 'postgres', url: await aPostgresDatabase() })],
] as const) {
  suite(`the clock that deletes, on ${engine}`, () => {
    test('the clock that deletes is that of the machine while nothing is wrong with it', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      assert.equal(await one.deletion.now(), one.clock.now())
      await one.pass(3 * HOUR)
      assert.equal(await one.deletion.now(), one.clock.now())
      assert.deepEqual(one.logged, [])
    })

    for (const jump of JUMPS) {
      test(`nothing is over after a jump of ${jump / HOUR} hours, until the clock is back`, async (t) => {
        const { run } = await aStore(t)
        const one = await run()
        const before = one.clock.now()
        one.clock.jump(jump)
        assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
        assert.equal(one.deletion.isHeld(), true)
        assert.deepEqual(one.logged, [
          {
            event: 'clock.jumped',
            cause: 'a step',
            clockAt: new Date(before + jump).toISOString(),
            expectedAt: new Date(before).toISOString(),
          },
        ])
        await one.pass(14 * MINUTE)
        assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
        one.clock.jump(-jump)
        assert.equal(await one.deletion.now(), before + 14 * MINUTE)
        assert.partialDeepStrictEqual(one.logged.at(-1), { because: 'it is back' })
      })
    }

    test('a clock that stays where it jumped to is believed after fifteen minutes', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      one.clock.jump(DAY)
      await one.deletion.now()
      await one.pass(15 * MINUTE - BEAT)
      assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
      await one.pass(BEAT)
      assert.equal(await one.deletion.now(), one.clock.now())
      assert.equal(one.logged.at(-1)?.because, 'it was steady')
    })

    test('the fifteen minutes begin anew with every further jump', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      for (const jump of [DAY, DAY, -5 * DAY]) {
        one.clock.jump(jump)
        await one.pass(14 * MINUTE)
        assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
      }
      assert.equal(one.logged.length, 3)
      await one.pass(15 * MINUTE)
      assert.equal(await one.deletion.now(), one.clock.now())
    })

    test('a step too small for a jump deletes nothing early', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      const before = one.clock.now()
      one.clock.jump(4 * MINUTE)
      assert.equal(await one.deletion.now(), before)
      one.clock.jump(-8 * MINUTE)
      assert.equal(await one.deletion.now(), before - 4 * MINUTE)
    })

    test('small steps that add up are a jump', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      for (let i = 0; i < 6; i++) {
        one.clock.jump(MINUTE)
        await one.pass(BEAT)
      }
      assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
    })

    test('a drift as of a clock that NTP slews is followed for ever', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      for (let i = 0; i < 100; i++) {
        one.clock.jump(5 * SECOND)
        one.clock.advance(3 * HOUR)
        await one.deletion.beat()
      }
      assert.equal(await one.deletion.now(), one.clock.now())
      assert.deepEqual(one.logged, [])
    })

    test('a restart does not count as a gap', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      await one.pass(HOUR)
      await one.deletion.close()
      one.clock.advance(4 * MINUTE)
      const next = await run(one.clock)
      assert.equal(await next.deletion.now(), next.clock.now())
    })

    for (const gap of [6 * MINUTE, 7 * DAY, -HOUR, -YEAR]) {
      test(`a gap of ${gap / MINUTE} minutes at the start holds back what is over, for fifteen minutes`, async (t) => {
        const { run } = await aStore(t)
        const one = await run()
        await one.deletion.close()
        one.clock.jump(gap)
        const next = await run(one.clock)
        assert.equal(await next.deletion.now(), NOTHING_IS_OVER)
        assert.equal(next.logged[0]?.cause, 'a gap at the start')
        await next.pass(15 * MINUTE)
        assert.equal(await next.deletion.now(), next.clock.now())
      })
    }

    test('a gap that is held back is none the smaller at the next start', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      await one.deletion.close()
      one.clock.jump(DAY)
      for (let i = 0; i < 3; i++) {
        const next = await run(one.clock)
        await next.pass(10 * MINUTE)
        assert.equal(await next.deletion.now(), NOTHING_IS_OVER)
        await next.deletion.close()
      }
    })

    test('a killed process leaves no gap, and its row goes with time', async (t) => {
      const { db, run } = await aStore(t)
      const killed = await run()
      await killed.pass(BEAT)
      const next = await run(killed.clock)
      assert.equal(await next.deletion.now(), next.clock.now())
      await next.pass(11 * MINUTE)
      const rows = await db.read('select instance from clock_beat')
      assert.equal(rows.length, 1)
      assert.deepEqual(next.logged, [])
    })

    test('the operator’s word ends the doubt, for the clock that it agrees with alone', async (t) => {
      const { db, run } = await aStore(t)
      const one = await run()
      one.clock.jump(DAY)
      assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
      await db.write(acceptClock(one.clock.now() - DAY))
      await one.pass(BEAT)
      assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
      await db.write(acceptClock(one.clock.now()))
      await one.pass(BEAT)
      assert.equal(await one.deletion.now(), one.clock.now())
      assert.equal(one.logged.at(-1)?.because, 'the operator')
      one.clock.jump(DAY)
      assert.equal(await one.deletion.now(), NOTHING_IS_OVER)
    })

    test('the one of several instances whose clock jumped deletes nothing, however long', async (t) => {
      const { run } = await aStore(t)
      const right = await run()
      const wrong = await run()
      await together(BEAT, right, wrong)
      await together(BEAT, right, wrong)
      wrong.clock.jump(YEAR)
      for (let i = 0; i < 100; i++) {
        await together(BEAT, right, wrong)
        assert.equal(await right.deletion.now(), right.clock.now())
        assert.equal(await wrong.deletion.now(), NOTHING_IS_OVER)
      }
      assert.deepEqual(right.logged, [])
      // Only the store's own time is left to compare with, and the one that is wrong never moved it.
      assert.equal((await timesIn(right.db)).seenAt, right.clock.now())
      wrong.clock.jump(-YEAR)
      await together(BEAT, right, wrong)
      assert.equal(await wrong.deletion.now(), wrong.clock.now())
    })

    test('an instance that starts with a wrong clock beside the others deletes nothing, however long', async (t) => {
      const { run } = await aStore(t)
      const right = await run()
      await right.pass(BEAT)
      const clock = manualClock(right.clock.now() + 30 * DAY)
      const wrong = await run(clock)
      for (let i = 0; i < 100; i++) {
        await together(BEAT, right, wrong)
        assert.equal(await wrong.deletion.now(), NOTHING_IS_OVER)
        assert.equal(await right.deletion.now(), right.clock.now())
      }
    })

    test('two instances that start together after a gap, with clocks apart, both wait for the operator', async (t) => {
      const { db, run } = await aStore(t)
      const before = await run()
      await before.deletion.close()
      before.clock.advance(7 * DAY)
      const right = await run(before.clock)
      const wrong = await run(manualClock(before.clock.now() + DAY))
      for (let i = 0; i < 100; i++) {
        await together(BEAT, right, wrong)
        assert.equal(await right.deletion.now(), NOTHING_IS_OVER)
        assert.equal(await wrong.deletion.now(), NOTHING_IS_OVER)
      }
      await db.write(acceptClock(right.clock.now()))
      await together(BEAT, right, wrong)
      assert.equal(await right.deletion.now(), right.clock.now())
      await together(HOUR, right, wrong)
      assert.equal(await wrong.deletion.now(), NOTHING_IS_OVER)
    })

    test('two instances that start together after a gap, with one time, go on after fifteen minutes', async (t) => {
      const { run } = await aStore(t)
      const before = await run()
      await before.deletion.close()
      before.clock.advance(7 * DAY)
      const one = await run(before.clock)
      const other = await run(manualClock(before.clock.now()))
      for (let i = 0; i < 61; i++) await together(BEAT, one, other)
      assert.equal(await one.deletion.now(), one.clock.now())
      assert.equal(await other.deletion.now(), other.clock.now())
    })

    test('an instance that cannot tell the store its time for a minute deletes nothing at once', async (t) => {
      const { run } = await aStore(t)
      const one = await run()
      one.clock.advance(MINUTE)
      assert.equal(one.deletion.atOnce(), one.clock.now())
      one.clock.advance(1)
      assert.equal(one.deletion.atOnce(), NOTHING_IS_OVER)
      await one.deletion.beat()
      assert.equal(one.deletion.atOnce(), one.clock.now())
    })
  })

  type Instance = {
    db: Db
    clock: ManualClock
    deletion: DeletionClock
    logged: ({ event: string } & Record<string, unknown>)[]
    /** So much time passes, with its beats. */
    pass(ms: number): Promise<void>
  }

  async function aStore(t: TestContext) {
    const db = await open(t)
    t.after(() => db.close())
    return {
      db,
      async run(clock = manualClock()): Promise<Instance> {
        const logged: Instance['logged'] = []
        const note = (facts: Instance['logged'][number]): void => void logged.push(facts)
        const log = { info: note, warn: note, error: note }
        const deletion = await openDeletionClock({ db, clock, log })
        return {
          ...{ db, clock, deletion, logged },
          async pass(ms) {
            for (let passed = 0; passed < ms; passed += BEAT) {
              clock.advance(Math.min(BEAT, ms - passed))
              await deletion.beat()
            }
          },
        }
      },
    }
  }

  async function together(ms: number, ...instances: Instance[]): Promise<void> {
    for (let passed = 0; passed < ms; passed += BEAT) {
      for (const { clock } of new Set(instances)) clock.advance(BEAT)
      for (const { deletion } of instances) await deletion.beat()
    }
  }
}
