/** The clock in the store: the beats of all instances, the hold after a re-anchor, and the blind windows. */
import type { BlindWindow } from '../lib/windows.ts'
import type { Db, Row, Statement } from './db.ts'

/** Three beats that are missing together are no accident of a timer: nobody could reach the instance. */
export const GAP_MS = 15_000
/** The gap of an instance that was killed counts for so long. Then its balancer has noticed. */
const MAX_GAP_MS = 10 * 60_000
/** An answer about the time that took longer is not exact enough. */
const EXACT_MS = 1_000
/** The newest ones are read. A service that was away more often than this has other worries. */
const MAX_WINDOWS = 1_000

/** The right time, and the monotonic time at which it was. Null: the answer took too long to be exact. */
export type ReadTime = () => Promise<{ at: number; monotonic: number } | null>

export type BeatState = {
  /** The last beat of any instance, or null in a new store. */
  beatAt: number | null
  heldUntil: number
  backUntil: number
  /** Says which windows there are. */
  windows: string
}

type Beat = {
  at: number
  instance: string
  /** No other instance can run, so that rows of others are left from before. */
  isAlone: boolean
  /** How the clock jumped before this beat, or null. */
  jump: { holdMs: number; isBack: boolean } | null
  rewind(now: number): Statement[]
}

/** Stores a beat, what nobody could see before it, and the hold that begins with it. */
export async function beatUnit(db: Db, beat: Beat): Promise<BeatState> {
  const { at, instance, isAlone, jump } = beat
  const rows = await db.write({
    lockKey: 'clock',
    statements: {
      first: {
        text: `insert into clock (id, beat_at, held_until, back_until) values (1, $1, 0, 0)
          on conflict (id) do nothing`,
        values: [at],
      },
      ahead: jump?.isBack ? [...cutAhead(at), ...beat.rewind(at)] : [],
      left: isAlone ? dropOthers(instance) : [],
      gaps: insertGaps(at),
      gap: insertGap(at, jump === null ? GAP_MS : 1),
      gone: { text: 'delete from clock_beat where beat_at < $1', values: [at - MAX_GAP_MS] },
      beat: {
        text: `insert into clock_beat (instance, beat_at) values ($1, $2)
          on conflict (instance) do update set beat_at = excluded.beat_at
          where clock_beat.beat_at < excluded.beat_at`,
        values: [instance, at],
      },
      common: { text: 'update clock set beat_at = $1 where beat_at < $1', values: [at] },
      held: jump === null ? [] : hold(at + jump.holdMs, jump.isBack),
      state: { text: STATE, values: [] },
      windows: { text: SUMS, values: [at] },
    },
  })
  return stateOf(rows.state[0], rows.windows[0])
}

/** As the last beat has left it. */
export async function firstState(db: Pick<Db, 'read'>): Promise<BeatState> {
  const [row] = await db.read(STATE)
  return stateOf(row, undefined)
}

const stateOf = (row: Row | undefined, sums: Row | undefined): BeatState => ({
  beatAt: row ? Number(row.beat_at) : null,
  heldUntil: Number(row?.held_until ?? 0),
  backUntil: Number(row?.back_until ?? 0),
  windows: JSON.stringify(sums ?? null),
})

const STATE = 'select beat_at, held_until, back_until from clock'

/** They change with every window. A window that grows changes the length. */
const SUMS = `select count(*) as number, max(ended_at) as newest,
    cast(sum(ended_at - began_at) as bigint) as length
  from blind_window where began_at <= $1`

/** The newest windows. */
export async function knownWindows(db: Pick<Db, 'read'>, now: number): Promise<BlindWindow[]> {
  const rows = await db.read(
    `select began_at, ended_at from blind_window where began_at <= $1
     order by ended_at desc limit ${MAX_WINDOWS}`,
    now,
  )
  return rows.map((row) => ({ beganAt: Number(row.began_at), endedAt: Number(row.ended_at) }))
}

/** Again with a later end, it grows. */
export async function storeWindow(db: Db, { beganAt, endedAt }: BlindWindow): Promise<void> {
  const window = {
    text: `insert into blind_window (began_at, ended_at) values ($1, $2) ${GROWS}`,
    values: [beganAt, endedAt],
  }
  await db.write({ lockKey: 'clock', statements: { window } })
}

const GROWS = `on conflict (began_at) do update set ended_at = excluded.ended_at
  where blind_window.ended_at < excluded.ended_at`

/** While no instance lives, nobody can be reached. One statement, so that two that start together store one window. */
const insertGap = (now: number, leastMs: number): Statement => ({
  text: `insert into blind_window (began_at, ended_at)
    select beat_at, cast($1 as bigint) from clock where beat_at <= $2 ${GROWS}`,
  values: [now, now - leastMs],
})

/** An instance that has not signed off, and is away. */
const insertGaps = (now: number): Statement => ({
  text: `insert into blind_window (began_at, ended_at)
    select beat_at, case when max(beat_at) + ${MAX_GAP_MS} < $1 then max(beat_at) + ${MAX_GAP_MS}
      else cast($1 as bigint) end
    from clock_beat where beat_at <= $2 group by beat_at ${GROWS}`,
  values: [now, now - GAP_MS],
})

/** What lies ahead of a clock that went back never was. */
const cutAhead = (now: number): Statement[] => [
  { text: 'delete from blind_window where began_at >= $1', values: [now] },
  { text: 'update blind_window set ended_at = $1 where ended_at > $1', values: [now] },
  { text: 'update clock_beat set beat_at = $1 where beat_at > $1', values: [now] },
  { text: 'update clock set beat_at = $1 where beat_at > $1', values: [now] },
]

/** After a step back, an earlier hold may end far ahead, so this one takes its place. */
const hold = (until: number, isBack: boolean): Statement => ({
  text: isBack
    ? 'update clock set held_until = $1, back_until = $1'
    : 'update clock set held_until = $1 where held_until < $1',
  values: [until],
})

const dropOthers = (instance: string): Statement => ({
  text: 'delete from clock_beat where instance <> $1',
  values: [instance],
})

/** Nobody waits for this instance's beats any more. */
export async function signOff(db: Db, instance: string): Promise<void> {
  const gone = { text: 'delete from clock_beat where instance = $1', values: [instance] }
  await db.write({ lockKey: 'clock', statements: { gone } })
}

/** A window matters to deadlines for two intervals and graces; the status shows it for a monitor's life. */
const WINDOWS_KEPT_MS = 400 * 24 * 60 * 60 * 1000

/** Deletes windows that matter to no monitor any more. */
export async function purgeWindows(db: Db, now: number): Promise<void> {
  const windows = {
    text: 'delete from blind_window where ended_at < $1',
    values: [now - WINDOWS_KEPT_MS],
  }
  await db.write({ lockKey: 'clock', statements: { windows } })
}

/** PostgreSQL's own time, which all instances share. */
export function databaseTime(db: Pick<Db, 'read'>, monotonic: () => number): ReadTime {
  return async () => {
    const askedAt = monotonic()
    const [row] = await db.read(
      'select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as at',
    )
    const took = monotonic() - askedAt
    return took > EXACT_MS ? null : { at: Number(row?.at), monotonic: askedAt + took / 2 }
  }
}
