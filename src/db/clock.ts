/**
 * The service's clock: an anchor, and the monotonic time since. The anchor is read at the start, at each beat, and
 * before the next answer once the machine's wall clock and its monotonic time have parted. Small differences are
 * taken over. A large one is a re-anchor, after which nothing final happens for a while. No other code knows of
 * clocks that jump.
 */
import { randomBytes } from 'node:crypto'
import { rfc3339, type ServiceClock, type SteadyClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { apart, type BlindWindow } from '../lib/windows.ts'
import type { Db, Row, Statement } from './db.ts'

/** How often an instance reads the time and says that it lives. */
export const BEAT_EVERY_MS = 5_000
/** A larger difference was a step of the clock, or a machine that slept. */
const STEP_MS = 5_000
/** Three beats that are missing together are no accident of a timer: nobody could reach the instance. */
const GAP_MS = 15_000
/** The gap of an instance that was killed counts for so long. Then its balancer has noticed. */
const MAX_GAP_MS = 10 * 60_000
/** Nothing final happens for as long as the jump or the gap was, and at most for so long. */
export const MAX_HOLD_MS = 15 * 60_000
/** An answer about the time that took longer is not exact enough. */
const EXACT_MS = 1_000
/** The newest ones are read. A service that was away more often than this has other worries. */
const MAX_WINDOWS = 1_000
/** A window matters to deadlines for two intervals and graces; the status shows it for a monitor's life. */
const WINDOWS_KEPT_MS = 400 * 24 * 60 * 60 * 1000

type Reading = { at: number; monotonic: number }

/** The right time, and the monotonic time at which it was. Null: the answer took too long to be exact. */
export type ReadTime = () => Promise<Reading | null>

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

/** @param machine its wall clock only says when to read the time again, unless `readTime` reads it. */
export async function openClock({
  db,
  machine,
  readTime,
  rewind,
  log,
  onReanchor,
}: {
  db: Db
  machine: SteadyClock
  readTime: ReadTime
  /** What sets all that lies ahead of `now` to `now`, after the clock went back. */
  rewind(now: number): Statement[]
  log: Log
  onReanchor(): void
}): Promise<ServiceClock> {
  const instance = randomBytes(9).toString('base64url')
  const parting = (): number => machine.now() - machine.monotonic()
  let anchor: Reading = { at: 0, monotonic: 0 }
  /** How far wall and monotonic time were apart at the last reading. */
  let parted = parting()
  /** The clock stands still rather than go back by a small difference. */
  let latest = Number.NEGATIVE_INFINITY
  let beatenAt = 0
  let stored: Stored = { heldUntil: 0, backUntil: 0, windows: [] }
  /** A re-anchor that is not stored yet: nothing final happens either. */
  let unsure: { isBack: boolean } | null = { isBack: false }
  let beating = Promise.resolve()
  let next: Promise<void> | null = null

  function now(): number {
    latest = Math.max(latest, Math.floor(anchor.at + machine.monotonic() - anchor.monotonic))
    return latest
  }

  /** Takes a reading over, and stores the beat with what follows from it. */
  async function beatOnce(): Promise<void> {
    const reading = await readTime()
    if (reading === null) return store(null)
    parted = parting()
    const before = anchor
    const differs = reading.at - before.at - (reading.monotonic - before.monotonic)
    anchor = reading
    if (Math.abs(differs) <= STEP_MS) return store(null)
    await reanchor(differs, before)
  }

  async function reanchor(differs: number, before: Reading): Promise<void> {
    const isBack = differs < 0
    unsure = { isBack }
    latest = Number.NEGATIVE_INFINITY
    const at = now()
    try {
      await store({ holdMs: Math.min(Math.ceil(Math.abs(differs)), MAX_HOLD_MS), isBack })
    } catch (error) {
      // The next beat finds the difference again.
      latest = Number.NEGATIVE_INFINITY
      anchor = before
      throw error
    }
    onReanchor()
    log.warn({
      event: 'clock.reanchored',
      expectedAt: rfc3339(Math.round(at - differs)),
      clockAt: rfc3339(at),
      heldUntil: rfc3339(stored.heldUntil),
    })
  }

  async function store(jump: Jump | null): Promise<void> {
    const at = now()
    stored = await storeBeat(db, { at, instance, jump, rewind })
    beatenAt = at
    unsure = null
  }

  /** One under way may have read the time before the machine's clock was set, so another one follows it. */
  function beat(): Promise<void> {
    next ??= beating
      .catch(() => undefined)
      .then(() => {
        next = null
        beating = beatOnce()
        return beating
      })
    return next
  }

  async function start(): Promise<void> {
    anchor = await firstReading(readTime)
    const beatAt = await lastBeatAt(db)
    const differs = beatAt === null ? 0 : anchor.at - beatAt
    if (differs >= GAP_MS || differs < -STEP_MS) return reanchor(differs, anchor)
    if (beatAt !== null) latest = beatAt
    await store(null)
  }

  await start()
  return {
    now,
    monotonic: machine.monotonic,
    beat,
    isHeld: () => unsure !== null || now() < stored.heldUntil,
    hasGoneBack: () => unsure?.isBack === true || now() < stored.backUntil,
    hasParted: () => Math.abs(parting() - parted) > STEP_MS,
    windows() {
      const at = now()
      // Nobody knows yet how long this gap lasts.
      return at - beatenAt < GAP_MS
        ? stored.windows
        : apart([...stored.windows, { beganAt: beatenAt, endedAt: at }])
    },
    async blind({ beganAt, endedAt }) {
      const window = {
        text: `insert into blind_window (began_at, ended_at) values ($1, $2) ${GROWS}`,
        values: [beganAt, endedAt],
      }
      await db.write({ lockKey: 'clock', statements: { window } })
      await beat()
    },
    async close() {
      await beat().catch(() => undefined)
      // Nobody waits for this instance's beats any more.
      const gone = { text: 'delete from clock_beat where instance = $1', values: [instance] }
      await db.write({ lockKey: 'clock', statements: { gone } }).catch(() => undefined)
    },
  }
}

async function firstReading(readTime: ReadTime): Promise<Reading> {
  for (let tries = 0; tries < 10; tries++) {
    const reading = await readTime()
    if (reading) return reading
  }
  throw new Error('the database took longer than a second to say the time, ten times')
}

/** The last beat of any instance, or null in a new store. */
export async function lastBeatAt(db: Pick<Db, 'read'>): Promise<number | null> {
  const [row] = await db.read('select beat_at from clock')
  return row ? Number(row.beat_at) : null
}

/** What all instances share. The windows are apart from each other. */
type Stored = { heldUntil: number; backUntil: number; windows: readonly BlindWindow[] }

/** How the clock jumped before a beat. */
type Jump = { holdMs: number; isBack: boolean }

/** Stores a beat, what nobody could see before it, and the hold that begins with it. */
async function storeBeat(
  db: Db,
  {
    at,
    instance,
    jump,
    rewind,
  }: { at: number; instance: string; jump: Jump | null; rewind(now: number): Statement[] },
): Promise<Stored> {
  const rows = await db.write({
    lockKey: 'clock',
    statements: {
      first: {
        text: `insert into clock (id, beat_at, held_until, back_until) values (1, $1, 0, 0)
          on conflict (id) do nothing`,
        values: [at],
      },
      ahead: jump?.isBack ? [...cutAhead(at), ...rewind(at)] : [],
      // No other instance can run on SQLite, so rows of others are left from before.
      left:
        db.engine === 'sqlite'
          ? { text: 'delete from clock_beat where instance <> $1', values: [instance] }
          : [],
      // An instance that has not signed off, and is away.
      gaps: {
        text: `insert into blind_window (began_at, ended_at)
          select beat_at, case when max(beat_at) + ${MAX_GAP_MS} < $1 then max(beat_at) + ${MAX_GAP_MS}
            else cast($1 as bigint) end
          from clock_beat where beat_at <= $2 group by beat_at ${GROWS}`,
        values: [at, at - GAP_MS],
      },
      // While no instance lives, nobody can be reached. One statement, so that two that start together store one window.
      gap: {
        text: `insert into blind_window (began_at, ended_at)
          select beat_at, cast($1 as bigint) from clock where beat_at <= $2 ${GROWS}`,
        values: [at, at - (jump === null ? GAP_MS : 1)],
      },
      gone: { text: 'delete from clock_beat where beat_at < $1', values: [at - MAX_GAP_MS] },
      beat: {
        text: `insert into clock_beat (instance, beat_at) values ($1, $2)
          on conflict (instance) do update set beat_at = excluded.beat_at
          where clock_beat.beat_at < excluded.beat_at`,
        values: [instance, at],
      },
      common: { text: 'update clock set beat_at = $1 where beat_at < $1', values: [at] },
      held: jump === null ? [] : hold(at + jump.holdMs, jump.isBack),
      state: { text: 'select held_until, back_until from clock', values: [] },
      windows: {
        text: `select began_at, ended_at from blind_window where began_at <= $1
          order by ended_at desc limit ${MAX_WINDOWS}`,
        values: [at],
      },
    },
  })
  const [state] = rows.state
  return {
    heldUntil: Number(state?.held_until ?? 0),
    backUntil: Number(state?.back_until ?? 0),
    windows: apart(rows.windows.map(windowOf)),
  }
}

const windowOf = (row: Row): BlindWindow => ({
  beganAt: Number(row.began_at),
  endedAt: Number(row.ended_at),
})

/** A window that is stored again with a later end grows. */
const GROWS = `on conflict (began_at) do update set ended_at = excluded.ended_at
  where blind_window.ended_at < excluded.ended_at`

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

/** Deletes windows that matter to no monitor any more. */
export async function purgeWindows(db: Db, now: number): Promise<void> {
  const windows = {
    text: 'delete from blind_window where ended_at < $1',
    values: [now - WINDOWS_KEPT_MS],
  }
  await db.write({ lockKey: 'clock', statements: { windows } })
}
