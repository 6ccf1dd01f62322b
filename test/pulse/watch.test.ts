import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWatch } from '../../src/pulse/watch.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** A store with a clock that stands still until it is moved, and instances on it. */
async function aService(t: After) {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  let now = T
  let passed = 0
  const clock = { now: () => now, monotonic: () => passed }
  return {
    pass(ms: number) {
      now += ms
      passed += ms
    },
    set(ms: number) {
      now += ms
    },
    async instance() {
      const db = await openDatabase(databaseUrl)
      t.after(() => db.close())
      let refused: 'work' | 'answer' | null = null
      const write: typeof db.write = async (unit) => {
        const what = refused
        refused = null
        const rows = what === 'work' ? null : await db.write(unit)
        if (what !== null || rows === null) throw new Error('the store is away')
        return rows
      }
      const watch = createWatch({ db: { ...db, write }, clock, isClockJumped: () => false })
      await watch.beat()
      return {
        ...watch,
        /** The store does nothing, or answers nothing. */
        refuseNext(what: 'work' | 'answer') {
          refused = what
        },
        /** The windows that it knows, in seconds from the start. */
        windows: () =>
          watch
            .fairness()
            .windows.map(({ beganAt, endedAt }) => [
              (beganAt - T) / SECOND,
              (endedAt - T) / SECOND,
            ]),
        rows: () => db.read('select began_at, ended_at, cause from pulse_blind_window'),
      }
    },
  }
}

test('beats in time make no window, however many instances there are', async (t) => {
  const service = await aService(t)
  const [one, other] = [await service.instance(), await service.instance()]
  for (let i = 0; i < 10; i++) {
    service.pass(14 * SECOND)
    await (i % 2 === 0 ? one : other).beat()
  }
  assert.deepEqual([one.windows(), other.windows()], [[], []])
})

test('a gap of fifteen seconds is a blind window, one millisecond less is none', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.pass(15 * SECOND - 1)
  await watch.beat()
  assert.deepEqual(watch.windows(), [])
  service.pass(15 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [[14.999, 29.999]])
})

test('two instances that start together after an outage store one window, and both know it', async (t) => {
  const service = await aService(t)
  await service.instance()
  service.pass(2 * HOUR)
  const [one, other] = await Promise.all([service.instance(), service.instance()])
  assert.equal((await one.rows()).length, 1)
  assert.deepEqual(one.windows(), [[0, 7200]])
  assert.deepEqual(other.windows(), [[0, 7200]])
})

test('an instance that stood still alone has no window, because another one lived', async (t) => {
  const service = await aService(t)
  const [frozen, living] = [await service.instance(), await service.instance()]
  for (let i = 0; i < 6; i++) {
    service.pass(10 * SECOND)
    await living.beat()
  }
  await frozen.notice()
  assert.deepEqual(frozen.windows(), [])
})

test('whoever asks after the process stood still notices it before the timer does', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.pass(14 * SECOND)
  await watch.notice()
  assert.deepEqual(watch.windows(), [])
  service.pass(HOUR)
  await watch.notice()
  assert.deepEqual(watch.windows(), [[0, 3614]])
})

test('a clock that is set forward by more than five seconds leaves a window of that length', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.set(5 * SECOND)
  await watch.notice()
  assert.deepEqual(watch.windows(), [], 'five seconds')
  service.pass(SECOND)
  await watch.beat()
  service.set(5 * SECOND + 1)
  await watch.notice()
  assert.deepEqual(watch.windows(), [[6, 11.001]])
  assert.deepEqual(
    (await watch.rows()).map(({ cause }) => cause),
    ['step'],
  )
})

test('a window that a clock far ahead has stored ends when the clock is set right', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.set(48 * HOUR)
  await watch.notice()
  assert.deepEqual(watch.windows(), [[0, 172_800]])
  service.set(-48 * HOUR)
  service.pass(5 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [[0, 5]])
  service.pass(5 * SECOND)
  await watch.beat()
  service.pass(20 * SECOND)
  await watch.beat()
  const present = [
    [0, 5],
    [10, 30],
  ]
  assert.deepEqual(watch.windows(), present, 'the beat is in the present again')
})

test('a window that lies ahead when a clock is set right never comes', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  for (const ms of [48 * HOUR, HOUR, -49 * HOUR]) {
    service.set(ms)
    await watch.notice()
    service.pass(SECOND)
  }
  const rows = (await watch.rows()).map(({ began_at, ended_at }) => [
    (Number(began_at) - T) / SECOND,
    (Number(ended_at) - T) / SECOND,
  ])
  assert.deepEqual(rows, [[0, 2]])
})

for (const [who, isStarted] of [
  ['by a process that lives', false],
  ['while nobody lives', true],
] as const) {
  test(`an outage counts that ended with a clock an hour ahead, which was set right ${who}`, async (t) => {
    const service = await aService(t)
    await service.instance()
    service.pass(2 * HOUR)
    service.set(HOUR)
    const ahead = await service.instance()
    assert.deepEqual(ahead.windows(), [[0, 3 * 3600]])
    service.pass(SECOND)
    service.set(-HOUR)
    const right = isStarted ? await service.instance() : ahead
    await right.notice()
    assert.deepEqual(right.windows(), [[0, 2 * 3600 + 1]])
  })
}

test('a step forward counts whole, although the answer to a beat in it was lost', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.set(10 * SECOND)
  watch.refuseNext('answer')
  await assert.rejects(watch.beat(), /the store is away/)
  service.set(10 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [[0, 20]])
})

test('from a standstill or a step of the clock until a beat has seen it, no deadline passes', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  const isHeld = () => watch.fairness().isHeld
  for (const move of [
    () => service.pass(15 * SECOND),
    () => service.set(5 * SECOND + 1),
    () => service.set(-5 * SECOND - 1),
  ]) {
    move()
    assert.equal(isHeld(), true, `${move}`)
    watch.refuseNext('work')
    await assert.rejects(watch.notice(), /the store is away/)
    assert.equal(isHeld(), true, `${move}, and a beat failed`)
    await watch.notice()
    assert.equal(isHeld(), false, `${move}, and a beat saw it`)
  }
  service.pass(15 * SECOND - 1)
  assert.equal(isHeld(), false)
})

test('a ping under a clock that was set back waits for the beat with which its window will begin', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.set(-HOUR)
  watch.refuseNext('work')
  await assert.rejects(watch.pingTime(), /the store is away/)
  assert.equal(await watch.pingTime(), T - HOUR)
  service.set(HOUR)
  const next = await service.instance()
  assert.deepEqual(next.windows(), [[-3600, 0]])
})

test('a window counts whose end is a little ahead, because the clock was set right after it', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.set(-480 * SECOND)
  service.pass(5 * SECOND)
  await watch.beat()
  service.set(530 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [[-475, 55]])
  service.set(-50 * SECOND)
  service.pass(5 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [[-475, 55]])
})

test('a clock that was set back, and set right while nobody lives, leaves a window from the last beat', async (t) => {
  const service = await aService(t)
  const one = await service.instance()
  service.set(-240 * SECOND)
  await one.notice()
  service.pass(10 * SECOND)
  await one.beat()
  service.set(240 * SECOND)
  service.pass(20 * SECOND)
  const next = await service.instance()
  assert.deepEqual(next.windows(), [[-230, 30]])
})

test('a clock that was set back while nobody lives, and set right again so, leaves a window too', async (t) => {
  const service = await aService(t)
  await service.instance()
  service.set(-240 * SECOND)
  await service.instance()
  service.set(240 * SECOND)
  service.pass(20 * SECOND)
  const next = await service.instance()
  assert.deepEqual(next.windows(), [[-240, 20]])
})

test('a clock that was ahead until it was set right hides no outage', async (t) => {
  const service = await aService(t)
  service.set(240 * SECOND)
  const one = await service.instance()
  service.set(-240 * SECOND)
  await one.notice()
  service.pass(60 * SECOND)
  const next = await service.instance()
  assert.deepEqual(next.windows(), [[0, 60]])
})

test('an instance whose clock is behind the others by a little leaves their beat alone', async (t) => {
  const service = await aService(t)
  const one = await service.instance()
  service.pass(12 * SECOND)
  await one.beat()
  service.set(-4 * SECOND)
  const behind = await service.instance()
  service.pass(16 * SECOND)
  await behind.beat()
  assert.deepEqual(behind.windows(), [])
})

test('an instance that starts knows the windows of the past', async (t) => {
  const service = await aService(t)
  const first = await service.instance()
  for (let i = 0; i < 3; i++) {
    service.pass(60 * SECOND)
    await first.beat()
    service.pass(SECOND)
    await first.beat()
  }
  const next = await service.instance()
  assert.deepEqual(next.windows(), first.windows())
  assert.equal(next.windows().length, 3)
})

test('one beat that the store refuses is no window', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  service.pass(5 * SECOND)
  watch.refuseNext('work')
  await assert.rejects(watch.beat(), /the store is away/)
  service.pass(5 * SECOND)
  await watch.beat()
  assert.deepEqual(watch.windows(), [])
})

test('a window that is stored after one that ends later is known at the next beat', async (t) => {
  const service = await aService(t)
  const [one, other] = [await service.instance(), await service.instance()]
  service.pass(10 * SECOND)
  await one.beat()
  service.pass(20 * SECOND)
  await one.beat()
  assert.deepEqual(one.windows(), [[10, 30]])
  await other.doubt({ ...{ beganAt: T + 2 * SECOND, endedAt: T + 8 * SECOND }, cause: 'outside' })
  await one.beat()
  assert.deepEqual(one.windows(), [
    [2, 8],
    [10, 30],
  ])
  await other.doubt({ ...{ beganAt: T + 2 * SECOND, endedAt: T + 9 * SECOND }, cause: 'outside' })
  await one.beat()
  assert.deepEqual(one.windows()[0], [2, 9], 'also if it only grows')
})

test('an instance that starts while pings are missing doubts what it sees', async (t) => {
  const service = await aService(t)
  const one = await service.instance()
  service.pass(10 * SECOND)
  await one.doubt({ ...{ beganAt: T, endedAt: T + 10 * SECOND }, cause: 'arrivals' })
  assert.equal((await service.instance()).fairness().isDoubtful, true)
})

test('a suspicion that is not said again is forgotten', async (t) => {
  const service = await aService(t)
  const watch = await service.instance()
  const seen = () => [watch.fairness().isHeld, watch.fairness().isDoubtful]
  watch.suspect({ isHeld: true, isDoubtful: true })
  service.pass(10 * SECOND)
  await watch.beat()
  service.pass(5 * SECOND - 1)
  assert.deepEqual(seen(), [true, true])
  service.pass(1)
  assert.deepEqual(seen(), [false, false])
})
