/** What the clock keeps in the store: the beats of instances, holds, blind windows, and the way back. */
import { apart, type BlindWindow } from '../lib/windows.ts'
import type { Db, Row, Statement } from './db.ts'

/** Beats that are missing for so long are no accident of a timer: nobody could reach the instance. */
export const GAP_MS = 15_000
/** The gap of an instance that was killed counts for so long. Then its balancer has noticed. */
const MAX_GAP_MS = 10 * 60_000
/** The newest ones are read. A service that was away more often than this has other worries. */
const MAX_WINDOWS = 1_000
/** A window matters to deadlines for two intervals and graces; the status shows it for a monitor's life. */
const WINDOWS_KEPT_MS = 400 * 24 * 60 * 60 * 1000

/** How the clock jumped before a beat. */
export type Jump = { holdMs: number; isBack: boolean }

/** The last beat of any instance, or null in a new store. */
export async function lastBeatAt(db: Pick<Db, 'read'>): Promise<number | null> {
  const [row] = await db.read('select beat_at from clock')
  return row ? Number(row.beat_at) : null
}

/** Stores a beat, what nobody could see before it, and the hold that begins with it. Returns what all instances share. */
export async function storeBeat(
  db: Db,
  { at, instance, jump }: { at: number; instance: string; jump: Jump | null },
): Promise<{
  heldUntil: number
  backUntil: number
  windows: readonly BlindWindow[]
  /** Whether other instances live, or died lately. */
  hasOthers: boolean
}> {
  const heldUntil = jump === null ? 0 : at + jump.holdMs
  const rows = await db.write({
    lockKey: 'clock',
    statements: {
      ahead: jump?.isBack ? rewind(at) : [],
      // While no instance lives, nobody can be reached. One statement, so that two that start together store one window.
      gaps: {
        text: `insert into blind_window (began_at, ended_at)
          select beat_at, max(ended_at) from (
            select beat_at, cast($1 as bigint) as ended_at from clock where beat_at <= $2
            union all
            select beat_at, case when beat_at + ${MAX_GAP_MS} < $1 then beat_at + ${MAX_GAP_MS} else $1 end
            from clock_beat where beat_at <= $3
          ) as gap group by beat_at ${GROWS}`,
        values: [at, at - (jump === null ? GAP_MS : 1), at - GAP_MS],
      },
      gone: { text: 'delete from clock_beat where beat_at < $1', values: [at - MAX_GAP_MS] },
      beat: {
        text: `insert into clock_beat (instance, beat_at) values ($1, $2)
          on conflict (instance) do update set beat_at = ${later('clock_beat', 'beat_at')}`,
        values: [instance, at],
      },
      clock: {
        text: `insert into clock (id, beat_at, held_until, back_until) values (1, $1, $2, $3)
          on conflict (id) do update set beat_at = ${later('clock', 'beat_at')},
            held_until = ${later('clock', 'held_until')}, back_until = ${later('clock', 'back_until')}
          returning held_until, back_until`,
        values: [at, heldUntil, jump?.isBack ? heldUntil : 0],
        expect: 1,
      },
      old: {
        text: `delete from blind_window where ended_at < $1
          and not exists (select 1 from clock where held_until > $2)`,
        values: [at - WINDOWS_KEPT_MS, at],
      },
      others: {
        text: 'select instance from clock_beat where instance <> $1 limit 1',
        values: [instance],
      },
      windows: {
        text: `select began_at, ended_at from blind_window where began_at <= $1
          order by ended_at desc limit ${MAX_WINDOWS}`,
        values: [at],
      },
    },
  })
  return {
    heldUntil: Number(rows.clock[0]?.held_until),
    backUntil: Number(rows.clock[0]?.back_until),
    windows: apart(rows.windows.map(windowOf)),
    hasOthers: rows.others.length > 0,
  }
}

/** This instance has signed off: nobody waits for its beats any more. */
export const signOff = (instance: string): Statement => ({
  text: 'delete from clock_beat where instance = $1',
  values: [instance],
})

/** A window that is stored again with a later end grows. */
export const insertWindow = ({ beganAt, endedAt }: BlindWindow): Statement => ({
  text: `insert into blind_window (began_at, ended_at) values ($1, $2) ${GROWS}`,
  values: [beganAt, endedAt],
})

const later = (table: string, column: string): string =>
  `case when excluded.${column} > ${table}.${column} then excluded.${column} else ${table}.${column} end`

const GROWS = `on conflict (began_at) do update set ended_at = ${later('blind_window', 'ended_at')}`

const windowOf = (row: Row): BlindWindow => ({
  beganAt: Number(row.began_at),
  endedAt: Number(row.ended_at),
})

/**
 * Times of wrong clocks, which would hold up what they pace: beats, claims, times of next looks, and what follows from
 * pings. A look that comes too early sets itself right.
 */
const TIMES = {
  clock: ['beat_at', 'held_until', 'back_until'],
  clock_beat: ['beat_at'],
  blind_window: ['ended_at'],
  lease: ['held_until'],
  purchase_order: ['looked_up_at'],
  alert_destination: ['due_at', 'not_before', 'day_started_at'],
  alert: ['not_before'],
  gate_intent: ['next_verify_at'],
  pulse_late_spell: ['ended_at'],
  pulse_monitor: [
    'last_ping_at',
    'rescheduled_at',
    'late_since',
    'failed_at',
    'state_since',
    'check_at',
  ],
}

/** Sets all that lies ahead of a clock that went back to now. What has not begun never was. */
export const rewind = (now: number): Statement[] =>
  [
    'delete from blind_window where began_at >= $1',
    'delete from pulse_late_spell where began_at > $1',
    `update pulse_ping set at = $1 where at > $1
      and public_id in (select public_id from pulse_monitor where last_ping_at > $1)`,
    // The revision is another, so that nothing is stored that was computed before.
    ...Object.entries(TIMES).map(
      ([
        table,
        columns,
      ]) => `update ${table} set ${table === 'pulse_monitor' ? 'revision = revision + 1, ' : ''}
        ${columns.map((time) => `${time} = case when ${time} > $1 then $1 else ${time} end`).join(', ')}
        where ${columns.map((time) => `${time} > $1`).join(' or ')}`,
    ),
  ].map((text) => ({ text, values: [now] }))
