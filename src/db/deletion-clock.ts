/**
 * The deletion clock says what has expired and may be deleted. Deletion is final, so the wall clock is used
 * only while it agrees with the time that has really passed, with the last time in the store, and with the
 * other instances. In doubt, nothing has expired.
 */
import { randomBytes } from 'node:crypto'
import {
  type Deletion,
  type DeletionTime,
  NOTHING_IS_OVER,
  rfc3339,
  type SteadyClock,
} from '../lib/clock.ts'
import type { Db, Row, Statement, Unit } from './db.ts'

/** A wall clock that differs by more than this from the expected time has jumped. NTP's steps are smaller. */
export const JUMP_MS = 5 * 60_000
/** A clock that ran steadily for this long after its jump is trusted again. */
export const STEADY_MS = 15 * 60_000
/** How often an instance writes its clock into the store. */
export const BEAT_EVERY_MS = 15_000
/** An instance that missed four beats is ignored. Without beats of its own, this instance deletes nothing. */
const SILENT_MS = 4 * BEAT_EVERY_MS
/** A row without a beat for this long belongs to an instance that was killed. */
const LEFT_MS = 10 * 60_000
/** At most this many rows are read: more instances than anybody runs. */
const MAX_INSTANCES = 256
/** NTP slews a clock by at most one part in 2000. Faster drift adds up to a jump. */
const MAX_DRIFT = 1 / 1000

export type DeletionClock = Deletion & {
  /** Whether deletion is held back, as far as this instance knows. */
  isHeld(): boolean
  /**
   * Whether it is held back because a clock was set, here or on another instance. After a start it may be held
   * back without that: then the service was away, or the clock was set while it was.
   */
  isJumped(): boolean
  /** Writes this clock into the store, and reads the clocks of the other instances. */
  beat(): Promise<void>
  /** Deletes this instance's row, so that the others no longer expect its beats. */
  close(): Promise<void>
}

type Facts = { event: string } & Record<string, unknown>
export type ClockLog = Record<'info' | 'warn' | 'error', (facts: Facts) => void>

/** Why the clock is in doubt. */
type Cause = 'a step' | 'a gap at the start' | 'another instance'
/** Why it is trusted again. */
type Relief = 'it is back' | 'it was steady' | 'the operator' | 'another instance'

type Moment = { wall: number; monotonic: number }

type Doubt = {
  /** Wall minus monotonic time at the last jump, and the monotonic time from which steadiness counts. */
  offset: number
  since: number
  cause: Cause
}

/**
 * What this instance knows about another one. `offset` is the other's wall time minus our monotonic time.
 * Until its beat has changed once (`hasMoved`), it may be long dead.
 */
type Witness = { beat: number; heardAt: number; hasMoved: boolean; offset: number; trusts: boolean }

/**
 * Opens the deletion clock of this instance.
 * @param onJump called at each jump, for the metrics.
 */
export async function openDeletionClock(deps: {
  db: Db
  clock: SteadyClock
  log: ClockLog
  onJump?: () => void
}): Promise<DeletionClock> {
  const { db, clock, log, onJump = () => undefined } = deps
  const instance = randomBytes(9).toString('base64url')
  const witnesses = new Map<string, Witness>()
  let beats = 0
  let beaten: Promise<void> | null = null
  let beatenAt = Number.NEGATIVE_INFINITY
  let doubt: Doubt | null = null

  const { seenAt, acceptedAt: acceptedBefore } = await timesIn(db)
  let acceptedAt = acceptedBefore
  /** The trusted wall minus monotonic time. If the store has no time yet, the clock is trusted. */
  let believed = (seenAt ?? clock.now()) - clock.monotonic()
  let followedAt = clock.monotonic()
  if (Math.abs(clock.now() - clock.monotonic() - believed) <= JUMP_MS) {
    believed = clock.now() - clock.monotonic()
  } else {
    doubtClock('a gap at the start')
  }
  await beat()

  /** Compares the clock with the trusted time. Must be called before each decision. */
  function observe(): void {
    const at = { monotonic: clock.monotonic(), wall: clock.now() }
    if (doubt === null) {
      const cause = causeOfDoubt(at)
      if (cause === null) followDrift(at)
      else doubtClock(cause)
      return
    }
    if (!isBack(at) && Math.abs(at.wall - at.monotonic - doubt.offset) > JUMP_MS)
      doubtClock('a step')
    const relief = reliefOf(doubt, at)
    if (relief !== null) believe(relief)
  }

  function isBack({ wall, monotonic }: Moment): boolean {
    return Math.abs(wall - monotonic - believed) <= JUMP_MS
  }

  function causeOfDoubt(at: Moment): Cause | null {
    if (!isBack(at)) return 'a step'
    return witnessesAt(at).some(({ trusts, isElsewhere }) => trusts && isElsewhere)
      ? 'another instance'
      : null
  }

  function reliefOf(doubted: Doubt, at: Moment): Relief | null {
    const { wall, monotonic } = at
    if (acceptedAt !== null && Math.abs(wall - acceptedAt) <= JUMP_MS) return 'the operator'
    const others = witnessesAt(at)
    if (others.some(({ isElsewhere }) => isElsewhere)) {
      // This clock is wrong, or another one is. While both run, only the operator can decide which.
      doubted.since = monotonic
      return null
    }
    if (isBack(at)) return 'it is back'
    if (others.some(({ trusts }) => trusts)) return 'another instance'
    return monotonic - doubted.since >= STEADY_MS ? 'it was steady' : null
  }

  /** Follows the clock no faster than clocks drift, so that small steps do not add up to a large one. */
  function followDrift({ wall, monotonic }: Moment): void {
    const max = (monotonic - followedAt) * MAX_DRIFT
    believed += Math.min(Math.max(wall - monotonic - believed, -max), max)
    followedAt = monotonic
  }

  /** The other instances that seem to run. */
  function witnessesAt({ wall, monotonic }: Moment): { trusts: boolean; isElsewhere: boolean }[] {
    return [...witnesses.values()]
      .filter(({ hasMoved, heardAt }) => hasMoved && monotonic - heardAt <= SILENT_MS)
      .map(({ offset, trusts }) => ({
        trusts,
        // Instances beat at different times, so clocks that agree may seem to differ by one interval.
        isElsewhere: Math.abs(offset + monotonic - wall) > JUMP_MS + SILENT_MS,
      }))
  }

  function doubtClock(cause: Cause): void {
    const monotonic = clock.monotonic()
    const now = clock.now()
    doubt = { offset: now - monotonic, since: monotonic, cause }
    onJump()
    log.warn({
      event: 'clock.jumped',
      cause,
      clockAt: rfc3339(now),
      expectedAt: rfc3339(Math.round(believed + monotonic)),
    })
  }

  function believe(because: Relief): void {
    followedAt = clock.monotonic()
    believed = clock.now() - followedAt
    doubt = null
    log.info({ event: 'clock.trusted', because, clockAt: rfc3339(clock.now()) })
  }

  function beat(): Promise<void> {
    beaten ??= beatOnce().finally(() => {
      beaten = null
    })
    return beaten
  }

  async function beatOnce(): Promise<void> {
    observe()
    beats += 1
    const now = clock.now()
    const monotonic = clock.monotonic()
    const isTrusted = doubt === null
    const read = await db.write({
      lockKey: instance,
      statements: {
        beat: writeBeat({ instance, beat: beats, now, isTrusted }),
        beats: READ_BEATS,
        times: READ_TIMES,
        seenAt: isTrusted ? [setTime('clock_seen_at', now)] : [],
      },
    })
    beatenAt = monotonic
    acceptedAt = timesOf(read.times).acceptedAt
    hear(read.beats as Beat[], monotonic)
    observe()
    const left = [...witnesses].filter(([, { heardAt }]) => monotonic - heardAt > LEFT_MS)
    for (const [name, { beat: last }] of left) {
      witnesses.delete(name)
      await db.write(dropBeat(name, last))
    }
  }

  function hear(rows: Beat[], monotonic: number): void {
    const others = new Map(rows.map((row) => [row.instance, row]))
    others.delete(instance)
    for (const name of witnesses.keys()) if (!others.has(name)) witnesses.delete(name)
    for (const [name, { beat, clock_at, is_trusted }] of others) {
      const previous = witnesses.get(name)
      if (previous?.beat === beat) continue
      witnesses.set(name, {
        beat,
        heardAt: monotonic,
        hasMoved: previous !== undefined,
        offset: clock_at - monotonic,
        trusts: is_trusted === 1,
      })
    }
  }

  function atOnce(): DeletionTime {
    observe()
    const monotonic = clock.monotonic()
    if (doubt !== null || monotonic - beatenAt > SILENT_MS) return NOTHING_IS_OVER
    // The earlier of the two, so that even a step too small to be a jump deletes nothing early.
    return Math.floor(Math.min(clock.now(), believed + monotonic)) as DeletionTime
  }

  return {
    async now() {
      if (clock.monotonic() - beatenAt >= BEAT_EVERY_MS) await beat()
      return atOnce()
    },
    atOnce,
    isHeld() {
      observe()
      return doubt !== null
    },
    isJumped() {
      observe()
      return doubt !== null && doubt.cause !== 'a gap at the start'
    },
    beat,
    async close() {
      // So that the next start finds a recent time in the store.
      await beat().catch(() => undefined)
      await db.write(dropBeat(instance, beats)).catch(() => undefined)
    },
  }
}

/** Notes that the operator accepted this time. Instances whose clock agrees with it delete again. */
export const acceptClock = (now: number): Unit => ({
  lockKey: 'clock_accepted_at',
  statements: { time: setTime('clock_accepted_at', now) },
})

/** The last time in the store, and the time that the operator accepted. */
export async function timesIn(
  db: Pick<Db, 'read'>,
): Promise<{ seenAt: number | null; acceptedAt: number | null }> {
  return timesOf(await db.read(READ_TIMES.text))
}

function timesOf(rows: Row[]): { seenAt: number | null; acceptedAt: number | null } {
  const timeOf = (name: string): number | null => {
    const value = rows.find((row) => row.name === name)?.value
    return value === undefined ? null : Number(value)
  }
  return { seenAt: timeOf('clock_seen_at'), acceptedAt: timeOf('clock_accepted_at') }
}

type Beat = { instance: string; beat: number; clock_at: number; is_trusted: number }

const READ_BEATS: Statement = {
  text: `select instance, beat, clock_at, is_trusted from clock_beat limit ${MAX_INSTANCES}`,
  values: [],
}

const READ_TIMES: Statement = {
  text: `select name, value from meta where name in ('clock_seen_at', 'clock_accepted_at')`,
  values: [],
}

const writeBeat = ({
  instance,
  beat,
  now,
  isTrusted,
}: {
  instance: string
  beat: number
  now: number
  isTrusted: boolean
}): Statement => ({
  text: `insert into clock_beat (instance, beat, clock_at, is_trusted) values ($1, $2, $3, $4)
    on conflict (instance) do update
    set beat = excluded.beat, clock_at = excluded.clock_at, is_trusted = excluded.is_trusted`,
  values: [instance, beat, now, Number(isTrusted)],
})

const setTime = (name: string, unixMs: number): Statement => ({
  text: `insert into meta (name, value) values ($1, $2)
    on conflict (name) do update set value = excluded.value`,
  values: [name, String(unixMs)],
})

const dropBeat = (instance: string, beat: number): Unit => ({
  lockKey: instance,
  statements: {
    beat: {
      text: 'delete from clock_beat where instance = $1 and beat = $2',
      values: [instance, beat],
    },
  },
})
