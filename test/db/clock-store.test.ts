import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rewind, signOff, storeBeat } from '../../src/db/clock-store.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'
import { shapeOf } from './shape.ts'

const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const HOUR = 60 * 60_000

/** The columns of each table with times that a clock which was ahead may have left. */
const TIMES: Record<string, string[]> = {
  lease: ['held_until'],
  purchase_order: ['looked_up_at'],
  alert_destination: ['due_at', 'not_before', 'day_started_at'],
  alert: ['not_before'],
  gate_intent: ['next_verify_at'],
  pulse_monitor: [
    ...['last_ping_at', 'rescheduled_at', 'late_since', 'failed_at'],
    ...['state_since', 'check_at'],
  ],
}

for (const [table, times] of Object.entries(TIMES)) {
  test(`what lies ahead of a clock that went back is now, in ${table}, and what is past stays`, async (t) => {
    const db = await openDatabase(await aMigratedDatabaseUrl(t))
    t.after(() => db.close())
    const columns = (await shapeOf(db)).flatMap((part) => {
      const [, of, column = '', type] = /^column (\w+)\.(\w+) (\w+)/.exec(part) ?? []
      const isNeeded = part.includes('not null') && !part.includes('default')
      return of === table && (isNeeded || times.includes(column)) ? [{ column, type }] : []
    })
    for (const [row, time] of [T + HOUR, T - HOUR].entries()) {
      const values = columns.map(({ column, type }) => {
        if (times.includes(column)) return time
        if (type === 'integer') return row
        return type === 'blob' ? new Uint8Array([row]) : String(row)
      })
      const names = columns.map(({ column }) => column)
      const text = `insert into ${table} (${names}) values (${names.map((_, i) => `$${i + 1}`)})`
      await db.write(unit({ text, values }))
    }
    await db.write(unit(...rewind(T)))
    const stored = await db.read(`select ${times} from ${table} order by ${times[0]}`)
    const all = (time: number) => Object.fromEntries(times.map((name) => [name, time]))
    assert.deepEqual(
      stored.map((row) => ({ ...row })),
      [all(T - HOUR), all(T)],
    )
  })
}

test('pings and late spells that lie ahead of a clock that went back end now, and what is past stays', async (t) => {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  await db.write(
    unit(
      {
        text: `insert into pulse_monitor (public_id, public_status_id, plan_id, owner_token_hash, ping_token_hash,
          heartbeat_limit, minimum_grace_seconds, name, description, expected_interval_seconds, grace_seconds,
          public_status_enabled, accepted_heartbeat_count, ping_count, last_ping_at,
          state_since, created_at, expires_at)
          values ('a', 'a', 'spark', $1, $1, 9, 60, $1, $1, 60, 60, 0, 2, 2, $2, 0, 0, 0)`,
        values: [new Uint8Array(), T + HOUR],
      },
      ...[T - HOUR, T + HOUR].map((at, i) => ({
        text: `insert into pulse_ping (public_id, number, at) values ('a', $1, $2)`,
        values: [i + 1, at],
      })),
      ...[
        [T - 3 * HOUR, T - HOUR],
        [T - HOUR, T + HOUR],
        [T + HOUR, T + 2 * HOUR],
        [T + 2 * HOUR, T + 3 * HOUR],
      ].map(([began = 0, ended = 0]) => ({
        text: `insert into pulse_late_spell (public_id, began_at, ended_at, cause) values ('a', $1, $2, 'silence')`,
        values: [began, ended],
      })),
    ),
  )
  await db.write(unit(...rewind(T)))
  const pings = await db.read('select at from pulse_ping order by number')
  assert.deepEqual(
    pings.map(({ at }) => at),
    [T - HOUR, T],
  )
  const spells = await db.read('select began_at, ended_at from pulse_late_spell order by began_at')
  assert.deepEqual(
    spells.map(({ began_at, ended_at }) => [began_at, ended_at]),
    [
      [T - 3 * HOUR, T - HOUR],
      [T - HOUR, T],
    ],
  )
})

test('an instance knows by its beat whether there are others, until they sign off', async (t) => {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const beat = async (instance: string): Promise<boolean> =>
    (await storeBeat(db, { at: T, instance, jump: null })).hasOthers
  assert.deepEqual([await beat('a'), await beat('b'), await beat('a')], [false, true, true])
  await db.write(unit(signOff('b')))
  assert.equal(await beat('a'), false)
})
