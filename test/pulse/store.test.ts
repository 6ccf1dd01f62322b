/** Each statement changes one monitor, unless something changed it since it was read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  createPulseStore,
  endMonitor,
  existingMonitor,
  extendMonitor,
  insertPing,
  insertSpell,
  type LateSpell,
  lookLater,
  type MonitorRow,
  purgeMonitors,
  updateMonitor,
} from '../../src/pulse/store.ts'
import type { After } from '../support/folder.ts'
import { newMonitor } from '../support/pulse-monitor.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = 1_800_000_000_000
const DAY = 24 * 60 * 60_000
const END = T + DAY
/** The extension of a monitor by a day. */
const extended = {
  publicId: 'a',
  endsAt: END,
  expiresAt: END + DAY,
  moreHeartbeats: 50,
  expiringAt: T + 5,
  now: END - 1,
}
const bytes = (byte: number): Uint8Array => new Uint8Array([byte])

test('an extension moves the end, adds its pings and looks no later, once, and at one monitor', async (t) => {
  const { run, row, change } = await aStore(t)
  await change({ is_expiry_told: 1, revision: 4, check_at: T + 9 })
  const before = await row('a')
  await run(extendMonitor(extended))
  assert.deepEqual(await row('a'), {
    ...before,
    expires_at: END + DAY,
    heartbeat_limit: 150,
    is_expiry_told: 0,
    check_at: T + 5,
    revision: 5,
  })
  assert.equal((await row('b')).expires_at, END)
  await assert.rejects(run(extendMonitor(extended)), UnitRefused)
  await run(extendMonitor({ ...extended, endsAt: END + DAY, expiringAt: T + 6 }))
  assert.equal((await row('a')).check_at, T + 5, 'it is looked at as early as before')
})

test('a monitor that is over, suspended or used up is not extended', async (t) => {
  const { run, change } = await aStore(t)
  const refused = (some = {}) =>
    assert.rejects(run(extendMonitor({ ...extended, ...some })), UnitRefused)
  await refused({ now: END })
  await change({ suspended_at: T })
  await refused()
  await change({ suspended_at: null, accepted_heartbeat_count: 100 })
  await refused()
  await change({ accepted_heartbeat_count: 99 })
  await run(extendMonitor(extended))
})

test('a step stores all facts of one monitor that may change', async (t) => {
  const { run, row } = await aStore(t)
  const [before, other] = [await row('a'), await row('b')]
  const next: MonitorRow = {
    ...before,
    public_status_id: 'next',
    ping_token_hash: bytes(3),
    name: bytes(4),
    description: bytes(5),
    expected_interval_seconds: 6,
    grace_seconds: 7,
    public_status_enabled: 1,
    accepted_heartbeat_count: 9,
    ping_count: 10,
    last_ping_at: 12,
    state_since: 13,
    late_since: 14,
    is_silent: 1,
    rescheduled_at: 15,
    failed_at: 16,
    exit_code: 17,
    check_at: 18,
    is_expiry_told: 1,
    open_runs: '19',
    last_run: '20',
    schedule: '21',
  }
  await run(updateMonitor(before, next))
  assert.deepEqual(await row('a'), { ...next, revision: before.revision + 1 })
  assert.deepEqual(await row('b'), other)
})

test('a step is refused if its monitor changed since it was read', async (t) => {
  const { run, row, change } = await aStore(t)
  await change({ accepted_heartbeat_count: 3, revision: 2 })
  const read = await row('a')
  const step = (revision: number) => run(updateMonitor({ ...read, revision }, read))
  await assert.rejects(step(1), UnitRefused)
  await step(2)
})

test('a later look is noted unless the monitor changed since it was read', async (t) => {
  const { run, row } = await aStore(t)
  await run(lookLater({ public_id: 'a', revision: 1 }, T + 7))
  assert.equal((await row('a')).check_at, T)
  await run(lookLater({ public_id: 'a', revision: 0 }, T + 7))
  assert.equal((await row('a')).check_at, T + 7)
  assert.equal((await row('b')).check_at, T)
})

test('a monitor is there until its end, unless it is suspended', async (t) => {
  const { run, change } = await aStore(t)
  await run(existingMonitor('a', END - 1))
  await assert.rejects(run(existingMonitor('a', END)), UnitRefused)
  await assert.rejects(run(existingMonitor('c', T)), UnitRefused)
  await change({ suspended_at: T })
  await assert.rejects(run(existingMonitor('a', T)), UnitRefused)
})

test('monitors are deleted that are named and over, some at a time', async (t) => {
  const { db, run, store, change } = await aStore(t)
  await change({ expires_at: T })
  assert.deepEqual(await store.expired(T, 9), ['a'])
  assert.deepEqual(await store.expired(T - 1, 9), [])
  assert.equal((await store.expired(END, 1)).length, 1)
  await change({ late_since: T, check_at: T + 5 })
  assert.deepEqual(await store.expired(T, 9), [], 'it may still fall silent')
  await run(...purgeMonitors(['a', 'b'], T))
  assert.equal((await db.read('select public_id from pulse_monitor')).length, 2)
  await change({ check_at: null })
  await run(...purgeMonitors(['a', 'b'], T))
  assert.deepEqual(await db.read('select public_id from pulse_monitor'), [{ public_id: 'b' }])
  await run(...purgeMonitors([], END))
  assert.equal((await db.read('select public_id from pulse_monitor')).length, 1)
})

test('the monitors whose look is due are those of the earliest looks', async (t) => {
  const { store, change } = await aStore(t)
  await change({ check_at: T + 1 })
  const due = async (now: number, most = 9) =>
    (await store.due(now, most)).map(({ public_id }) => public_id)
  assert.deepEqual(await due(T - 1), [])
  assert.deepEqual(await due(T), ['b'])
  assert.deepEqual(await due(T + 1), ['b', 'a'])
  assert.deepEqual(await due(T + 1, 1), ['b'])
})

test('a status is found under its own id while it is shared', async (t) => {
  const { store, change } = await aStore(t)
  assert.equal(await store.shared('status of a'), null)
  await change({ public_status_enabled: 1 })
  assert.equal((await store.shared('status of a'))?.public_id, 'a')
  assert.equal(await store.shared('status of b'), null)
  assert.equal((await store.monitor('b'))?.public_id, 'b')
  assert.equal(await store.monitor('c'), null)
})

test('the newest pings of one monitor are read up to a number', async (t) => {
  const { run, store } = await aStore(t)
  for (const publicId of ['a', 'b']) {
    for (const number of [1, 2, 3]) {
      await run(insertPing(publicId, { number, at: T + number, run: `${publicId}${number}` }))
    }
  }
  const runs = async (upTo: number, most = 9) =>
    (await store.pings('a', upTo, most)).map(({ run }) => run)
  assert.deepEqual(await runs(3), ['a3', 'a2', 'a1'])
  assert.deepEqual(await runs(2), ['a2', 'a1'])
  assert.deepEqual(await runs(3, 1), ['a3'])
})

test('the newest spells of a monitor are read that began before a time, or back to the one at a time', async (t) => {
  const { run, store } = await aStore(t)
  const spell = (beganAt: number): LateSpell => ({
    beganAt,
    cause: 'silence',
    endedAt: beganAt + 2,
  })
  for (const began of [11, 25]) await run(insertSpell('b', spell(began)))
  for (const began of [10, 20, 30]) await run(insertSpell('a', spell(began)))
  const began = (spells: LateSpell[]) => spells.map(({ beganAt }) => beganAt)
  assert.deepEqual(began(await store.spells('a', 31, 9)), [30, 20, 10])
  assert.deepEqual(began(await store.spells('a', 30, 9)), [20, 10])
  assert.deepEqual(began(await store.spells('a', 31, 2)), [30, 20])
  assert.deepEqual(began(await store.spellsSince('a', 5, 9)), [30, 20, 10])
  assert.deepEqual(began(await store.spellsSince('a', 21, 9)), [30, 20])
  assert.deepEqual(began(await store.spellsSince('a', 26, 9)), [30, 20], 'whatever began elsewhere')
  assert.deepEqual(began(await store.spellsSince('a', 20, 1)), [30])
})

test('a monitor is ended once, before all times, and is purged then', async (t) => {
  const { run, store, row } = await aStore(t)
  const { revision, expires_at } = await row('a')
  await run(endMonitor('a'))
  const ended = await row('a')
  assert.deepEqual([ended.expires_at, ended.check_at, ended.revision], [0, null, revision + 1])
  assert.equal((await row('b')).expires_at, expires_at)
  await assert.rejects(run(endMonitor('a')), UnitRefused)
  assert.deepEqual(await store.expired(0, 9), ['a'])
})

/** The monitors `b` and `a`, in this order, so that the first row is not the one that is meant. */
async function aStore(t: After) {
  const db = await aDatabase(t)
  const store = createPulseStore(db)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  for (const publicId of ['b', 'a']) {
    await run(newMonitor({ publicId, createdAt: T, expiresAt: END, checkAt: T }))
  }
  return {
    db,
    run,
    store,
    row: async (publicId: string) => (await store.monitor(publicId)) ?? assert.fail('it is gone'),
    /** Of `a`, as some other statement left it. */
    change: async (columns: Record<string, number | null>) => {
      const set = Object.keys(columns).map((column, i) => `${column} = $${i + 1}`)
      const text = `update pulse_monitor set ${set.join(', ')} where public_id = 'a'`
      await run({ text, values: Object.values(columns), expect: 1 })
    },
  }
}
