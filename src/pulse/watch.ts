/**
 * The service watches itself: living instances move one common beat in the store, and a gap between two beats,
 * or a step of the wall clock, is a blind window. Nobody could ping in it, so it moves the deadlines of monitors.
 */
import type { Db, Row, Statement } from '../db/db.ts'
import { before, type DeletionTime, type SteadyClock } from '../lib/clock.ts'
import { apart, type BlindWindow, type Fairness } from './fairness.ts'

/** How often an instance moves the common beat. */
export const BEAT_EVERY_MS = 5_000
/** Three beats that are missing together are no accident of a timer. */
export const GAP_MS = 15_000
/** The wall clock may differ by this much from the time that has passed. NTP's steps are smaller. */
export const STEP_MS = 5_000
/**
 * A beat of others or a window that is further ahead was made by a clock that was wrong enough to be doubted. What is
 * less far ahead counts: the step itself was real, and the clock may have been set right since.
 */
const AHEAD_MS = 5 * 60_000
/** An instance looks at itself from outside three times within this time. */
const DOUBT_MS = 30_000
/** A suspicion that is not said again within this time is none. */
const SUSPICION_MS = 15_000
/** A window matters to deadlines for two intervals and graces; the status shows it for a monitor's life. */
const KEPT_MS = 400 * 24 * 60 * 60 * 1000
/** The newest ones are read. A service that was away more often than this has other worries. */
const MAX_WINDOWS = 1_000

/** `isHeld`: no deadline passes. `isDoubtful`: what seems late may be the service's own fault. */
export type Suspicion = Pick<Fairness, 'isHeld' | 'isDoubtful'>

export type Watch = {
  /** Moves the common beat, and stores the blind window that ends now. */
  beat(): Promise<void>
  /**
   * Notices at once what the timer would notice later: that this process or its clock stood still. To be awaited
   * before `fairness`, and costs nothing between two beats.
   */
  notice(): Promise<void>
  /** Whether the process has not stood still, and its clock was not set, since a beat saw it. */
  hasNoticed(): boolean
  /** Held from a standstill or a step of the clock until it was noticed: nobody knows its window yet. */
  fairness(): Fairness
  /**
   * The time to store for a ping. A clock that was set back beats first, and no ping is accepted if it cannot: the window
   * that follows once the clock is right begins with that beat, and has to have the ping in it, even if this process dies.
   */
  pingTime(): Promise<number>
  /** Stores a window in which the service was not reached from outside, or its new end. */
  doubt(window: BlindWindow & { cause: 'outside' | 'arrivals' }): Promise<void>
  /** What this instance suspects for now, without a window of it. To be said again, or it is forgotten. */
  suspect(suspicion: Suspicion): void
}

export function createWatch({
  db,
  clock,
  isClockJumped,
}: {
  db: Pick<Db, 'read' | 'write'>
  clock: SteadyClock
  isClockJumped: () => boolean
}): Watch {
  let windows: BlindWindow[] = []
  /** Says which windows these are. */
  let known = ''
  /** The end of the last window that was seen from outside, on any instance. */
  let doubtfulAt = Number.NEGATIVE_INFINITY
  let last: { wall: number; monotonic: number } | null = null
  let beating: Promise<void> | null = null
  let suspected: Suspicion & { until: number } = { isHeld: false, isDoubtful: false, until: 0 }

  const moment = () => ({ wall: clock.now(), monotonic: clock.monotonic() })

  /** How far the wall clock was set forward since the last beat; below zero if it was set back. */
  function step(): number {
    const at = moment()
    return last === null ? 0 : at.wall - last.wall - (at.monotonic - last.monotonic)
  }

  const hasStoodStill = (): boolean =>
    last === null || clock.now() - last.wall >= GAP_MS || Math.abs(step()) > STEP_MS

  async function beatOnce(): Promise<void> {
    const at = moment()
    // At a start, nobody knows where the clock comes from.
    const hasGoneBack = last === null || step() < -STEP_MS
    const stepped =
      last !== null && step() > STEP_MS
        ? [storeWindow({ beganAt: last.wall, endedAt: at.wall, cause: 'step' })]
        : []
    const { sums, outside } = await db.write({
      lockKey: 'pulse_beat',
      statements: {
        gap: insertGap(at.wall),
        stepped,
        cut: hasGoneBack ? cutWindows(at.wall) : [],
        beat: moveBeat(at.wall, hasGoneBack ? STEP_MS : AHEAD_MS),
        sums: sumsOfWindows(at.wall + AHEAD_MS),
        outside: newestOutside(at.wall),
      },
    })
    const now = JSON.stringify(sums[0])
    if (now !== known) {
      windows = apart((await db.read(WINDOWS, at.wall + AHEAD_MS)).map(windowOf))
      known = now
    }
    doubtfulAt = Number(outside[0]?.ended_at ?? Number.NEGATIVE_INFINITY)
    last = at
  }

  const suspicion = (): Suspicion =>
    clock.monotonic() < suspected.until ? suspected : { isHeld: false, isDoubtful: false }

  function beat(): Promise<void> {
    beating ??= beatOnce().finally(() => {
      beating = null
    })
    return beating
  }

  return {
    beat,
    async notice() {
      // A beat under way has read the clock before, and does not know what happened since.
      for (let beats = 0; beats < 2 && hasStoodStill(); beats++) await beat()
    },
    hasNoticed: () => !hasStoodStill(),
    fairness: () => ({
      windows,
      isHeld: isClockJumped() || suspicion().isHeld || hasStoodStill(),
      isDoubtful: clock.now() - doubtfulAt <= DOUBT_MS || suspicion().isDoubtful,
    }),
    async pingTime() {
      for (let beats = 0; beats < 2 && step() < -STEP_MS; beats++) await beat()
      return clock.now()
    },
    suspect(suspicion) {
      suspected = { ...suspicion, until: clock.monotonic() + SUSPICION_MS }
    },
    async doubt(window) {
      await db.write({
        lockKey: 'pulse_beat',
        statements: { window: storeWindow(window) },
      })
      // A beat under way may have read the windows before.
      await beating?.catch(() => undefined)
      await beat()
    },
  }
}

const windowOf = (row: Row): BlindWindow => ({
  beganAt: Number(row.began_at),
  endedAt: Number(row.ended_at),
})

/** One statement with its condition, so that two instances that start together store one window. */
const insertGap = (now: number): Statement => ({
  text: `insert into pulse_blind_window (began_at, ended_at, cause)
    select beat_at, cast($1 as bigint), 'gap' from pulse_beat where beat_at <= $2
    on conflict (began_at) do nothing`,
  values: [now, now - GAP_MS],
})

/** Again with a later end, it grows: its cause lasts, or the answer to the beat that stored it was lost. */
const storeWindow = ({
  beganAt,
  endedAt,
  cause,
}: BlindWindow & { cause: 'step' | 'outside' | 'arrivals' }): Statement => ({
  text: `insert into pulse_blind_window (began_at, ended_at, cause) values ($1, $2, $3)
    on conflict (began_at) do update set ended_at = excluded.ended_at
    where pulse_blind_window.ended_at < excluded.ended_at`,
  values: [beganAt, endedAt, cause],
})

/**
 * A window that a clock far ahead has stored ends when that clock is set back: what it began with may have been an
 * outage, or a clock that was behind before. One that begins later never was. If the clock was right before, what is lost
 * so is in the gap that follows after the common beat.
 */
const cutWindows = (now: number): Statement[] => [
  {
    text: 'update pulse_blind_window set ended_at = $1 where began_at < $1 and ended_at > $2',
    values: [now, now + AHEAD_MS],
  },
  {
    text: 'delete from pulse_blind_window where began_at >= $1 and ended_at > $2',
    values: [now, now + AHEAD_MS],
  },
]

/**
 * A beat that a wrong clock has left ahead would hide the next outage, and the pings of a clock that was set back would
 * have deadlines before the window that begins with the beat. Instances' clocks differ a little, so the beat of another
 * one goes back only if it is far ahead.
 */
const moveBeat = (now: number, aheadMs: number): Statement => ({
  text: `insert into pulse_beat (id, beat_at) values (1, $1)
    on conflict (id) do update set beat_at = excluded.beat_at
    where pulse_beat.beat_at < $1 or pulse_beat.beat_at > $2`,
  values: [now, now + aheadMs],
})

const newestOutside = (now: number): Statement => ({
  text: `select max(ended_at) as ended_at from pulse_blind_window
    where cause in ('outside', 'arrivals') and ended_at >= $1 and ended_at <= $2`,
  values: [now - DOUBT_MS, now + STEP_MS],
})

/**
 * They change with every window, also with one that ends before the newest: an instance may store what it has seen
 * after another one. A window that ends later was stored by a clock that was far ahead, and is none unless it is cut.
 */
const sumsOfWindows = (time: number): Statement => ({
  text: `select count(*) as number, max(ended_at) as newest, cast(sum(ended_at - began_at) as bigint) as length
    from pulse_blind_window where ended_at <= $1`,
  values: [time],
})

const WINDOWS = `select began_at, ended_at from pulse_blind_window where ended_at <= $1
  order by ended_at desc limit ${MAX_WINDOWS}`

/** Deletes windows that can no longer matter to a monitor. */
export const dropWindows = (now: DeletionTime): Statement => ({
  text: 'delete from pulse_blind_window where ended_at < $1',
  values: [before(now, KEPT_MS)],
})
