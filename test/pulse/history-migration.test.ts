import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timeText } from '../../src/lib/time-list.ts'
import { acceptPings } from '../../src/pulse/accepting.ts'
import { ALWAYS_SEEING } from '../../src/pulse/fairness.ts'
import { createHistoryReader } from '../../src/pulse/history.ts'
import { createPulseStore, insertMonitor } from '../../src/pulse/store.ts'
import { aMigratedDatabaseUrl, openDatabase, query } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = 1_700_000_000_000
const END = 9_000_000_000_000

/** Takes the store back to before the history. */
const BACK = [
  'drop view monitor_pings',
  'alter table reveal_binding drop column bound_ping_count',
  'drop table pulse_ping_chunk',
  'drop table pulse_run',
  'drop table pulse_gone',
  ...['armed_at', 'chunk_count', 'untimed_heartbeat_count', 'late_ms'].map(
    (column) => `alter table pulse_monitor drop column ${column}`,
  ),
  'alter table pulse_late_spell drop column cause',
  'alter table pulse_late_spell drop column late_before_ms',
  'alter table pulse_late_spell rename to pulse_silence',
  'delete from migration where version in (24, 38)',
]

test('a monitor from before the history begins it with the pings and spells that are stored, and goes on', async (t) => {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const before = await openDatabase(databaseUrl)
  const aMonitor = (publicId: string) =>
    insertMonitor({
      ...{ publicId, publicStatusId: `of ${publicId}`, planId: 'spark', heartbeatLimit: 1000 },
      ...{ ownerTokenHash: Buffer.alloc(32), pingTokenHash: Buffer.alloc(32) },
      ...{ minimumGraceSeconds: 60, expectedIntervalSeconds: 604_800, graceSeconds: 60 },
      ...{ createdAt: 1, expiresAt: END, checkAt: END - 1 },
    })
  await before.write(unit(aMonitor('fresh'), aMonitor('old')))
  await before.close()
  for (const statement of BACK) await query({ databaseUrl }, statement)
  // Of its 130 beats, the newest 100 have times.
  const recent = Array.from({ length: 100 }, (_, i) => timeText(T + 1000 * (99 - i))).join('')
  await query(
    { databaseUrl },
    `update pulse_monitor set accepted_heartbeat_count = 130, recent_heartbeats = $1,
      last_ping_at = $2, state_since = 1 where public_id = 'old'`,
    ...[recent, T + 99_000],
  )
  for (const [began, ended] of [
    [10_000, 11_000],
    [20_000, 22_000],
    [30_000, 33_000],
  ] as const) {
    await query(
      { databaseUrl },
      `insert into pulse_silence (public_id, began_at, ended_at, ended_by)
        values ('old', $1, $2, 'ping')`,
      ...[T + began, T + ended],
    )
  }
  const db = await openDatabase(databaseUrl)
  t.after(() => db.close())
  const store = createPulseStore(db)
  const fresh = await store.monitor('fresh')
  assert.deepEqual([fresh?.armed_at, fresh?.untimed_heartbeat_count, fresh?.late_ms], [null, 0, 0])
  const old = await store.monitor('old')
  assert.ok(old)
  assert.deepEqual([old.armed_at, old.untimed_heartbeat_count, old.late_ms], [T, 30, 6000])
  const sums = await db.read('select late_before_ms from pulse_late_spell order by began_at')
  assert.deepEqual(
    sums.map(({ late_before_ms }) => late_before_ms),
    [0, 1000, 3000],
  )
  const reader = createHistoryReader({
    ...{ db, clock: { now: () => T + 100_000 }, watch: { fairness: () => ALWAYS_SEEING } },
  })
  const page = await reader.page(old, { limit: 200, place: null })
  const types = page?.entries.map(({ type }) => type) ?? []
  assert.deepEqual([types.length, types.filter((type) => type === 'ping').length], [103, 100])
  assert.equal(page?.entries.at(-1)?.at, new Date(T).toISOString())
  // Its row is full, so the next ping takes a turn.
  const ping = acceptPings({ publicId: 'old', pingTokenHash: Buffer.alloc(32) }, [T + 100_000])
  await assert.rejects(db.write(unit(ping)))
})
