/** Each statement changes one monitor, unless something changed it since it was read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  changeSettings,
  createPulseStore,
  dropMonitor,
  existingMonitor,
  extendMonitor,
  insertMonitor,
  lookLater,
  type MonitorRow,
  purgeMonitors,
  replacePingToken,
  turnMonitor,
} from '../../src/pulse/store.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = 1_800_000_000_000
const DAY = 24 * 60 * 60_000
const END = T + DAY
const bytes = (byte: number): Uint8Array => new Uint8Array([byte])

test('an extension moves the end, adds its pings and looks no later, once, and at one monitor', async (t) => {
  const { run, row, change } = await aStore(t)
  await change({ is_expiry_told: 1, revision: 4, check_at: T + 9 })
  const extended = {
    ...{ publicId: 'a', endsAt: END, expiresAt: END + DAY, moreHeartbeats: 50 },
    ...{ expiringAt: T + 5, now: END - 1 },
  }
  const before = await row('a')
  await run(extendMonitor(extended))
  assert.deepEqual(await row('a'), {
    ...before,
    ...{
      expires_at: END + DAY,
      heartbeat_limit: 150,
      is_expiry_told: 0,
      check_at: T + 5,
      revision: 5,
    },
  })
  assert.equal((await row('b')).expires_at, END)
  await assert.rejects(run(extendMonitor(extended)), UnitRefused)
  await run(extendMonitor({ ...extended, endsAt: END + DAY, expiringAt: T + 6 }))
  assert.equal((await row('a')).check_at, T + 5, 'it is looked at as early as before')
})

test('a monitor that is over, suspended or used up is not extended', async (t) => {
  const { run, change } = await aStore(t)
  const extended = {
    ...{ publicId: 'a', endsAt: END, expiresAt: END + DAY, moreHeartbeats: 50 },
    ...{ expiringAt: T + 5, now: END - 1 },
  }
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

test('a turn stores all facts of one monitor', async (t) => {
  const { run, row } = await aStore(t)
  const [before, other] = [await row('a'), await row('b')]
  const next: MonitorRow = {
    ...before,
    ...{ accepted_heartbeat_count: 1, last_ping_at: 2, recent_heartbeats: '3', state_since: 4 },
    ...{ late_since: 5, is_silent: 1, rescheduled_at: 6, failed_at: 7, exit_code: 8, check_at: 9 },
    ...{ is_expiry_told: 1, open_runs: '10', last_run: '11', schedule_cron: '12' },
    ...{ schedule_time_zone: '13', schedule_grace_seconds: 14, armed_at: 15, chunk_count: 16 },
    ...{ untimed_heartbeat_count: 17, late_ms: 18 },
  }
  await run(turnMonitor(before, next))
  assert.deepEqual(await row('a'), { ...next, revision: before.revision + 1 })
  assert.deepEqual(await row('b'), other)
})

test('a turn is refused if its monitor changed since it was read', async (t) => {
  const { run, row, change } = await aStore(t)
  await change({ accepted_heartbeat_count: 3, revision: 2 })
  const read = await row('a')
  const turn = (revision: number) => run(turnMonitor({ ...read, revision }, read))
  await assert.rejects(turn(1), UnitRefused)
  await turn(2)
})

test('a later look is noted unless the monitor changed since it was read', async (t) => {
  const { run, row } = await aStore(t)
  await run(lookLater({ public_id: 'a', revision: 1 }, T + 7))
  assert.equal((await row('a')).check_at, T)
  await run(lookLater({ public_id: 'a', revision: 0 }, T + 7))
  assert.equal((await row('a')).check_at, T + 7)
  assert.equal((await row('b')).check_at, T)
})

test('settings change those that are given, of one monitor that is not over', async (t) => {
  const { run, row } = await aStore(t)
  const before = await row('a')
  const none = {
    ...{ name: null, description: null, expectedIntervalSeconds: null, graceSeconds: null },
    ...{ publicStatusEnabled: null, nextPublicStatusId: 'next' },
  }
  await run(changeSettings('a', END - 1, none))
  assert.deepEqual(await row('a'), { ...before, settings_changed_at: END - 1 })
  const all = {
    ...{ name: bytes(5), description: bytes(6), expectedIntervalSeconds: 7, graceSeconds: 8 },
    ...{ publicStatusEnabled: 1, nextPublicStatusId: 'next' },
  }
  await run(changeSettings('a', T + 1, all))
  assert.deepEqual(await row('a'), {
    ...before,
    ...{ name: bytes(5), description: bytes(6), expected_interval_seconds: 7, grace_seconds: 8 },
    ...{ public_status_enabled: 1, settings_changed_at: T + 1 },
  })
  assert.equal((await row('b')).settings_changed_at, T)
  await assert.rejects(run(changeSettings('a', END, all)), UnitRefused)
})

test('an address of a status dies with the sharing, and only then', async (t) => {
  const { run, row } = await aStore(t)
  const share = async (publicStatusEnabled: number | null) => {
    const none = { name: null, description: null, expectedIntervalSeconds: null }
    const change = { ...none, graceSeconds: null, publicStatusEnabled, nextPublicStatusId: 'next' }
    await run(changeSettings('a', T, change))
    return (await row('a')).public_status_id
  }
  assert.equal(await share(0), 'status of a', 'it was not shared')
  assert.equal(await share(1), 'status of a')
  assert.equal(await share(null), 'status of a')
  assert.equal(await share(1), 'status of a')
  assert.equal(await share(0), 'next')
})

test('a monitor is there until its end, unless it is suspended', async (t) => {
  const { run, change } = await aStore(t)
  await run(existingMonitor('a', END - 1))
  await assert.rejects(run(existingMonitor('a', END)), UnitRefused)
  await assert.rejects(run(existingMonitor('c', T)), UnitRefused)
  await change({ suspended_at: T })
  await assert.rejects(run(existingMonitor('a', T)), UnitRefused)
})

test('a ping token is replaced at one monitor, and one is deleted alone', async (t) => {
  const { db, run, row } = await aStore(t)
  await run(replacePingToken('a', bytes(9)))
  assert.deepEqual((await row('a')).ping_token_hash, bytes(9))
  assert.deepEqual((await row('b')).ping_token_hash, bytes(2))
  await assert.rejects(run(replacePingToken('c', bytes(9))), UnitRefused)
  await run(dropMonitor('a'))
  assert.deepEqual(await db.read('select public_id from pulse_monitor'), [{ public_id: 'b' }])
  await assert.rejects(run(dropMonitor('a')), UnitRefused)
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

/** The monitors `b` and `a`, in this order, so that the first row is not the one that is meant. */
async function aStore(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const store = createPulseStore(db)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  for (const publicId of ['b', 'a']) {
    await run(
      insertMonitor({
        ...{ publicId, publicStatusId: `status of ${publicId}`, planId: 'standard' },
        ...{ ownerTokenHash: bytes(1), pingTokenHash: bytes(2), heartbeatLimit: 100 },
        ...{ minimumGraceSeconds: 60, expectedIntervalSeconds: 60, graceSeconds: 60 },
        ...{ createdAt: T, expiresAt: END, checkAt: T },
      }),
    )
  }
  return {
    ...{ db, run, store },
    row: async (publicId: string) => (await store.monitor(publicId)) ?? assert.fail('it is gone'),
    /** Of `a`, as some other statement left it. */
    change: async (columns: Record<string, number | null>) => {
      const set = Object.keys(columns).map((column, i) => `${column} = $${i + 1}`)
      const text = `update pulse_monitor set ${set.join(', ')} where public_id = 'a'`
      await run({ text, values: Object.values(columns), expect: 1 })
    },
  }
}
