import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MAX_HOLD_MS, openClock, type ServiceClock } from '../../src/db/clock.ts'
import type { Db } from '../../src/db/db.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** A store, and instances on it. All of them read the same time, which the test passes and sets. Times are in seconds. */
async function aStore(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  let wall = T
  let monotonic = 0
  const events: string[] = []
  const note = (facts: { event: string }) => void events.push(facts.event)

  async function open({
    engine = 'postgres',
    store = db,
  }: {
    engine?: Db['engine']
    store?: Db
  } = {}) {
    return openClock({
      db: { ...store, engine },
      machine: { now: () => wall, monotonic: () => monotonic },
      readTime: async () => ({ at: wall, monotonic }),
      log: { info: note, warn: note, error: note },
      onReanchor: () => note({ event: 'counted' }),
    })
  }
  return {
    db,
    open,
    events,
    set(ms: number) {
      wall += ms
    },
    pass(ms: number) {
      wall += ms
      monotonic += ms
    },
    /** All of these live for so long. */
    async live(ms: number, ...clocks: ServiceClock[]) {
      for (let left = ms; left > 0; left -= 5 * SECOND) {
        wall += Math.min(left, 5 * SECOND)
        monotonic += Math.min(left, 5 * SECOND)
        for (const clock of clocks) await clock.beat()
      }
    },
  }
}

const seconds = (unixMs: number): number => (unixMs - T) / SECOND
const windowsOf = (clock: ServiceClock) =>
  clock.windows().map(({ beganAt, endedAt }) => [seconds(beganAt), seconds(endedAt)])

suite('the clock of the service', () => {
  test('the first start of a store holds nothing and has seen everything', async (t) => {
    const { open, events } = await aStore(t)
    const clock = await open()
    assert.deepEqual([clock.now(), clock.isHeld(), clock.hasGoneBack()], [T, false, false])
    assert.deepEqual([clock.windows(), events], [[], []])
  })

  test('a difference of five seconds is taken over, and one that is back makes the clock stand', async (t) => {
    const { open, set, pass, events } = await aStore(t)
    const clock = await open()
    set(5 * SECOND)
    assert.equal(seconds(clock.now()), 0)
    await clock.beat()
    assert.equal(seconds(clock.now()), 5)
    set(-5 * SECOND)
    await clock.beat()
    const times = [clock.now()]
    for (const ms of [3 * SECOND, 2 * SECOND, SECOND]) {
      pass(ms)
      times.push(clock.now())
    }
    assert.deepEqual(times.map(seconds), [5, 5, 5, 6])
    assert.deepEqual([events, clock.isHeld()], [[], false])
  })

  test('a clock that leaps ahead says so before the next answer, and holds for as long as the leap', async (t) => {
    const { open, live, set, events } = await aStore(t)
    const clock = await open()
    await live(10 * SECOND, clock)
    set(MINUTE)
    assert.equal(clock.hasParted(), true)
    assert.equal(seconds(clock.now()), 10, 'until it was read')
    await clock.beat()
    assert.deepEqual([clock.hasParted(), seconds(clock.now())], [false, 70])
    assert.deepEqual(windowsOf(clock), [[10, 70]])
    assert.deepEqual(events, ['counted', 'clock.reanchored'])
    assert.deepEqual([clock.isHeld(), clock.hasGoneBack()], [true, false])
    await live(55 * SECOND, clock)
    assert.equal(clock.isHeld(), true)
    await live(5 * SECOND, clock)
    assert.equal(clock.isHeld(), false)
    assert.deepEqual(windowsOf(clock), [[10, 70]])
  })

  test('a clock that goes back has no window, sets what lies ahead to now, and sells nothing for a while', async (t) => {
    const { open, live, set } = await aStore(t)
    const clock = await open()
    await live(20 * SECOND, clock)
    await clock.blind({ beganAt: T + 2 * SECOND, endedAt: T + 15 * SECOND })
    await clock.blind({ beganAt: T + 16 * SECOND, endedAt: T + 19 * SECOND })
    set(-10 * SECOND)
    await clock.beat()
    assert.deepEqual(windowsOf(clock), [[2, 10]])
    assert.deepEqual([clock.isHeld(), clock.hasGoneBack()], [true, true])
    await live(10 * SECOND, clock)
    assert.deepEqual([clock.isHeld(), clock.hasGoneBack()], [false, false])
    assert.deepEqual(windowsOf(clock), [[2, 10]], 'its beats went back, too')
  })

  for (const [name, jump] of [
    ['ahead', 300 * 24 * HOUR],
    ['back', -300 * 24 * HOUR],
  ] as const) {
    test(`a clock that leaps far ${name} holds for a quarter of an hour, over a restart and for all instances`, async (t) => {
      const { open, live, set } = await aStore(t)
      const clock = await open()
      const other = await open()
      set(jump)
      await clock.beat()
      await other.beat()
      await live(MINUTE, clock, other)
      await other.close()
      const again = await open()
      const hold = () => [clock, again].map((one) => [one.isHeld(), one.hasGoneBack()])
      assert.deepEqual(hold(), Array(2).fill([true, jump < 0]))
      await live(MAX_HOLD_MS - MINUTE - 5 * SECOND, clock, again)
      assert.deepEqual(hold(), Array(2).fill([true, jump < 0]))
      await live(5 * SECOND, clock, again)
      assert.deepEqual(hold(), Array(2).fill([false, false]))
    })
  }

  test('a hold that a clock far ahead has stored ends with the hold of the step back', async (t) => {
    const { open, live, set } = await aStore(t)
    const clock = await open()
    set(24 * HOUR)
    await clock.beat()
    set(-24 * HOUR)
    await clock.beat()
    await live(MAX_HOLD_MS, clock)
    assert.equal(clock.isHeld(), false)
  })

  test('a re-anchor that the store refuses is held, and found again', async (t) => {
    const { db, open, live, set, events } = await aStore(t)
    let isRefusing = false
    const write: Db['write'] = (unit) =>
      isRefusing ? Promise.reject(new Error('full')) : db.write(unit)
    const clock = await open({ store: { ...db, write } })
    await live(5 * SECOND, clock)
    isRefusing = true
    set(HOUR)
    await assert.rejects(clock.beat(), /full/)
    assert.deepEqual([seconds(clock.now()), clock.isHeld()], [5, true])
    isRefusing = false
    await clock.beat()
    assert.equal(seconds(clock.now()), 5 + 3600)
    assert.deepEqual(windowsOf(clock), [[5, 5 + 3600]])
    assert.deepEqual(events, ['counted', 'clock.reanchored'])
  })

  test('a reading that took too long changes nothing', async (t) => {
    const { db } = await aStore(t)
    let monotonic = 0
    let reading: { at: number; monotonic: number } | null = { at: T, monotonic: 0 }
    const log = { info() {}, warn() {}, error() {} }
    const clock = await openClock({
      db,
      log,
      onReanchor: () => undefined,
      machine: { now: () => T + HOUR, monotonic: () => monotonic },
      readTime: async () => reading,
    })
    reading = null
    monotonic = 5 * SECOND
    await clock.beat()
    assert.deepEqual([seconds(clock.now()), clock.isHeld()], [5, false])
  })
})

suite('blind windows', () => {
  test('a start within fifteen seconds of the last beat sees everything', async (t) => {
    const { open, pass, events } = await aStore(t)
    await (await open()).close()
    pass(15 * SECOND - 1)
    const clock = await open()
    assert.deepEqual([clock.windows(), clock.isHeld(), events], [[], false, []])
  })

  test('a start after a longer gap has a window and a hold of its length', async (t) => {
    const { open, pass, live, events } = await aStore(t)
    await (await open()).close()
    pass(15 * SECOND)
    const clock = await open()
    assert.deepEqual([windowsOf(clock), clock.isHeld()], [[[0, 15]], true])
    assert.deepEqual(events, ['counted', 'clock.reanchored'])
    await live(15 * SECOND, clock)
    assert.equal(clock.isHeld(), false)
  })

  test('a process that stood still is blind from its last beat, before the next one is stored', async (t) => {
    const { open, pass, events } = await aStore(t)
    const clock = await open()
    pass(15 * SECOND - 1)
    assert.deepEqual(clock.windows(), [])
    assert.equal(clock.isBeating(), true)
    pass(HOUR)
    assert.deepEqual(windowsOf(clock), [[0, 3615 - 0.001]])
    assert.equal(clock.isBeating(), false)
    await clock.beat()
    assert.equal(clock.isBeating(), true)
    assert.deepEqual(windowsOf(clock), [[0, 3615 - 0.001]])
    assert.deepEqual([clock.isHeld(), events], [false, []], 'its clock was right')
  })

  test('an instance that is gone without a word blinds all for at most ten minutes', async (t) => {
    const { open, live } = await aStore(t)
    const killed = await open()
    const clock = await open()
    await live(5 * SECOND, killed, clock)
    await live(15 * SECOND, clock)
    assert.deepEqual(windowsOf(clock), [[5, 20]])
    await live(20 * MINUTE, clock)
    assert.deepEqual(windowsOf(clock), [[5, 605]])
  })

  test('an instance that signs off blinds nobody', async (t) => {
    const { open, live } = await aStore(t)
    const stopped = await open()
    const clock = await open()
    await stopped.close()
    await live(MINUTE, clock)
    assert.deepEqual(clock.windows(), [])
  })

  test('a killed instance that was alone blinds nobody once the next one runs', async (t) => {
    const { open, pass, live } = await aStore(t)
    await open({ engine: 'sqlite' })
    pass(10 * SECOND)
    const clock = await open({ engine: 'sqlite' })
    await live(MINUTE, clock)
    assert.deepEqual(clock.windows(), [])
  })

  test('two instances that start together after an outage store one window', async (t) => {
    const { open, pass } = await aStore(t)
    await (await open()).close()
    pass(HOUR)
    const clocks = await Promise.all([open(), open()])
    for (const clock of clocks) {
      await clock.beat()
      assert.deepEqual(windowsOf(clock), [[0, 3600]])
    }
  })

  test('a window that somebody else has seen is known to all instances with their next beat, and grows', async (t) => {
    const { open, live } = await aStore(t)
    const [one, two] = [await open(), await open()]
    await live(10 * SECOND, one, two)
    await one.blind({ beganAt: T, endedAt: T + 4 * SECOND })
    await one.blind({ beganAt: T, endedAt: T + 8 * SECOND })
    await two.beat()
    assert.deepEqual([windowsOf(one), windowsOf(two)], [[[0, 8]], [[0, 8]]])
  })

  test('a window is forgotten after 400 days, and not by a clock that leaps ahead', async (t) => {
    const { open, live, set, pass } = await aStore(t)
    const clock = await open()
    await live(20 * SECOND, clock)
    await clock.blind({ beganAt: T, endedAt: T + 5 * SECOND })
    set(401 * DAY)
    await clock.beat()
    set(-401 * DAY)
    await clock.beat()
    assert.deepEqual(windowsOf(clock), [[0, 5]])
    pass(401 * DAY)
    await live(10 * SECOND, clock)
    assert.deepEqual(windowsOf(clock), [[20, 20 + (401 * DAY) / SECOND + 5]])
  })
})
