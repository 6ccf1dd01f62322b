import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { monitorHealth } from '../../src/pulse/health.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import { createPulse } from '../../src/pulse/service.ts'
import { createWatch } from '../../src/pulse/watch.ts'
import type { After } from '../support/folder.ts'
import { provisioned } from '../support/pulse-monitor.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** When the owner of a monitor of a day is told that it ends. */
const EXPIRING_AFTER_MS = 0.9 * 24 * HOUR
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** A monitor of a minute of interval and one of grace, and instances whose clock moves only by hand. */
async function aMonitor(t: After) {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  let now = T
  let passed = 0
  const clock = { now: () => now, monotonic: () => passed }

  async function instance() {
    const db = await openDatabase(databaseUrl)
    t.after(() => db.close())
    let meanwhile: (() => Promise<unknown>) | null = null
    let losing: 'work' | 'answer' | null = null
    const reading: Db = {
      ...db,
      async read(text, ...values) {
        const rows = await db.read(text, ...values)
        const work = text.startsWith('select * from pulse_monitor') ? meanwhile : null
        if (work) meanwhile = null
        await work?.()
        return rows as never
      },
    }
    const beating: typeof db.write = async (unit) => {
      const lost = losing
      losing = null
      if (lost === 'work') throw new Error('the store is away')
      const rows = await db.write(unit)
      if (lost === 'answer') throw new Error('the store is away')
      return rows
    }
    const watch = createWatch({
      db: { ...db, write: beating },
      clock,
      isClockJumped: () => false,
    })
    await watch.beat()
    const parts = { ...{ db: reading, clock, watch }, hints: createHints() }
    const pulse = createPulse({ ...parts, listeners: [], onArrival: () => undefined })

    async function monitor() {
      const found = await pulse.owned(publicId, ownerToken)
      assert.ok(found)
      return found
    }
    const status = async () => pulse.status(await monitor())
    return {
      ...{ db, pulse, watch, status },
      /** Happens while a monitor is read the next time: what is read is what was before. */
      whileReading(work: () => unknown) {
        meanwhile = async () => work()
      },
      /** The next beat fails before its work, or after it. */
      loseNextBeat(what: 'work' | 'answer') {
        losing = what
      },
      state: async () => (await status()).state,
      isHealthy: async () => (await monitorHealth(parts, publicId))?.isHealthy,
      async ping() {
        const facts = await pulse.pinged(publicId, pingToken)
        assert.ok(facts && (await pulse.signal(facts, { kind: 'ping', rid: null })))
      },
      async share() {
        await pulse.change(await monitor(), { publicStatusEnabled: true })
        const { publicStatusId } = await status()
        return async () => (await pulse.publicStatus(publicStatusId ?? ''))?.state
      },
      async stored() {
        const [row] = await db.read('select late_since, is_expiry_told from pulse_monitor')
        return { isLate: row?.late_since !== null, isExpiryTold: row?.is_expiry_told === 1 }
      },
    }
  }

  const first = await instance()
  const { publicId, ownerToken, pingToken } = await provisioned(first.db, PULSE_PLANS.spark, now)
  return {
    ...{ first, instance },
    pass(ms: number) {
      now += ms
      passed += ms
    },
    set(ms: number) {
      now += ms
    },
  }
}

test('a clock that is set right while a monitor is read makes nobody late', async (t) => {
  const { first, pass, set } = await aMonitor(t)
  set(-10 * MINUTE)
  await first.watch.notice()
  await first.ping()
  const shared = await first.share()
  pass(SECOND)
  const looks = {
    owner: first.state,
    public: shared,
    buyer: async () => ((await first.isHealthy()) ? 'operational' : 'not healthy'),
  }
  for (const [who, look] of Object.entries(looks)) {
    first.whileReading(() => set(10 * MINUTE))
    assert.equal(await look(), 'operational', who)
    set(-10 * MINUTE)
    await first.watch.notice()
  }
})

test('a lateness that nobody could help is not stored, if the clock is set while another change is', async (t) => {
  const { first, pass, set } = await aMonitor(t)
  pass(EXPIRING_AFTER_MS - SECOND)
  await first.watch.notice()
  await first.ping()
  pass(SECOND)
  first.whileReading(() => set(10 * MINUTE))
  await first.pulse.scan()
  assert.deepEqual(await first.stored(), { isLate: false, isExpiryTold: false })
  pass(5 * SECOND)
  await first.pulse.scan()
  assert.deepEqual(await first.stored(), { isLate: false, isExpiryTold: true })
})

test('a clock that is set while a monitor is read, and again while it is read anew, refuses no buyer', async (t) => {
  const { first, set } = await aMonitor(t)
  await first.ping()
  const jump = () => set(3 * MINUTE)
  first.whileReading(() => {
    jump()
    first.whileReading(jump)
  })
  assert.equal(await first.isHealthy(), true)
})

test('a process that stands still while a monitor is read makes nobody late', async (t) => {
  const { first, pass } = await aMonitor(t)
  await first.ping()
  first.whileReading(() => pass(HOUR))
  assert.equal(await first.state(), 'operational')
  assert.equal(await first.state(), 'operational', 'and has noticed it')
})

test('a process that stands still while others live, and has read the monitor before, makes nobody late', async (t) => {
  const { first, instance, pass } = await aMonitor(t)
  const other = await instance()
  await first.ping()
  const othersLive = async () => {
    for (let i = 0; i < 30; i++) {
      pass(10 * SECOND)
      await other.watch.beat()
      await other.ping()
    }
  }
  first.whileReading(othersLive)
  assert.equal(await first.state(), 'operational')
  await first.watch.notice()
  first.whileReading(othersLive)
  assert.equal(await first.isHealthy(), true, 'to a buyer')
})

test('a ping between two steps of the clock that one beat sees together makes nobody late', async (t) => {
  const { first, pass, set } = await aMonitor(t)
  await first.ping()
  pass(SECOND)
  set(-10 * MINUTE)
  await first.ping()
  pass(SECOND)
  set(10 * MINUTE)
  assert.equal(await first.state(), 'operational')
  pass(SECOND)
  await first.watch.beat()
  assert.equal(await first.state(), 'operational', 'after the beat')
})

for (const what of ['work', 'answer'] as const) {
  test(`a ping between two steps of the clock, and a beat between them whose ${what} was lost, makes nobody late`, async (t) => {
    const { first, pass, set } = await aMonitor(t)
    await first.ping()
    set(-10 * MINUTE)
    first.loseNextBeat(what)
    await assert.rejects(first.watch.beat(), /away/)
    await first.ping()
    pass(SECOND)
    set(10 * MINUTE)
    assert.equal(await first.state(), 'operational')
  })
}

test('a ping after a step back makes nobody late, even if its process dies before it beats', async (t) => {
  const { first, instance, pass, set } = await aMonitor(t)
  await first.ping()
  set(-10 * MINUTE)
  await first.ping()
  pass(SECOND)
  set(10 * MINUTE)
  const next = await instance()
  assert.equal(await next.state(), 'operational')
})

test('a ping to one instance after a step back makes nobody late on another one', async (t) => {
  const { first, instance, pass, set } = await aMonitor(t)
  const other = await instance()
  await first.ping()
  set(-10 * MINUTE)
  await first.ping()
  pass(SECOND)
  await other.watch.notice()
  set(10 * MINUTE)
  assert.equal(await other.state(), 'operational')
  assert.equal(await first.state(), 'operational')
})

test('a clock that is set back, far ahead, and right makes nobody late', async (t) => {
  const { first, pass, set } = await aMonitor(t)
  await first.ping()
  set(-5 * MINUTE)
  await first.watch.notice()
  await first.ping()
  pass(SECOND)
  set(11 * MINUTE)
  await first.watch.notice()
  assert.equal(await first.state(), 'operational', 'ahead')
  pass(SECOND)
  set(-6 * MINUTE)
  assert.equal(await first.state(), 'operational', 'right')
})

test('a job that dies after a clock far ahead was set right is told late in time', async (t) => {
  const { first, pass, set } = await aMonitor(t)
  set(HOUR)
  await first.watch.notice()
  await first.ping()
  pass(SECOND)
  set(-HOUR)
  await first.watch.notice()
  await first.ping()
  for (let passed = 0; passed < 2 * MINUTE; passed += 5 * SECOND) {
    assert.deepEqual(await first.stored(), { isLate: false, isExpiryTold: false }, `${passed} ms`)
    pass(5 * SECOND)
    await first.watch.beat()
    await first.pulse.scan()
  }
  assert.deepEqual(await first.stored(), { isLate: true, isExpiryTold: false })
})
