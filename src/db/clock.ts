/**
 * The service's clock: an anchor, and the monotonic time since. The anchor is read at the start, at each beat, and
 * before the next answer once the machine's wall clock and its monotonic time have parted. Small differences are
 * taken over. A large one is a re-anchor, after which nothing final happens for a while. No other code knows of
 * clocks that jump.
 */
import { randomBytes } from 'node:crypto'
import { rfc3339, type SteadyClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { apart, type BlindWindow } from '../lib/windows.ts'
import { GAP_MS, insertWindow, type Jump, lastBeatAt, signOff, storeBeat } from './clock-store.ts'
import type { Db } from './db.ts'

/** How often an instance reads the time and says that it lives. */
export const BEAT_EVERY_MS = 5_000
/** A larger difference was a step of the clock, or a machine that slept. */
const STEP_MS = 5_000
/** Nothing final happens for as long as the jump or the gap was, and at most for so long. */
export const MAX_HOLD_MS = 15 * 60_000
/** An answer about the time that took longer is not exact enough. */
const EXACT_MS = 1_000
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

/** @throws Error if the store is never fast enough to be exact. */
async function firstReading(readTime: ReadTime): Promise<Reading> {
  for (let tries = 0; tries < 10; tries++) {
    const reading = await readTime()
    if (reading) return reading
  }
  throw new Error('the store took longer than a second to say the time, ten times')
}

/** The time of a store for what works on it beside the service: as the service tells it, but for small differences. */
export async function storeClock(db: Db, machine: SteadyClock): Promise<SteadyClock> {
  if (db.engine === 'sqlite') return machine
  const { at, monotonic } = await firstReading(databaseTime(db, machine.monotonic))
  return { ...machine, now: () => Math.floor(at + machine.monotonic() - monotonic) }
}

/** The one clock of the service. */
export type ServiceClock = Awaited<ReturnType<typeof openClock>>

/** @param machine its wall clock only says when to read the time again, unless `readTime` reads it. */
export async function openClock({
  db,
  machine,
  readTime,
  log,
  onReanchor,
}: {
  db: Db
  machine: SteadyClock
  readTime: ReadTime
  log: Log
  onReanchor(): void
}) {
  // No other instance can run on SQLite: its beats go on where the last one's ended.
  const instance = db.engine === 'sqlite' ? 'only' : randomBytes(9).toString('base64url')
  const timeBy = ({ at, monotonic }: Reading): number => at + machine.monotonic() - monotonic
  const parting = (): number => machine.now() - machine.monotonic()
  /** How far wall and monotonic time were apart at the last reading. */
  let parted = parting()
  let anchor: Reading
  /** The clock stands still rather than go back by a small difference. */
  let latest = Number.NEGATIVE_INFINITY
  let beatenAt = 0
  let stored: Awaited<ReturnType<typeof storeBeat>>
  /** A jump was seen that is not stored yet. */
  let isUnsure = false
  let beating = Promise.resolve()
  let next: Promise<void> | null = null

  function now(): number {
    latest = Math.max(latest, Math.floor(timeBy(anchor)))
    return latest
  }

  /** Takes a reading over when its beat is stored. Otherwise the next beat finds the difference again. */
  async function takeOver(reading: Reading, mostAheadMs: number): Promise<void> {
    // Without another reading, the next beat reads the time again.
    const seenParted = reading === anchor ? parted : parting()
    const differs = reading.at - anchor.at - (reading.monotonic - anchor.monotonic)
    const isJump = differs < -STEP_MS || differs > mostAheadMs
    isUnsure ||= isJump
    const holdMs = Math.min(Math.ceil(Math.abs(differs)), MAX_HOLD_MS)
    const jump: Jump | null = isJump ? { holdMs, isBack: differs < 0 } : null
    const time = Math.floor(timeBy(reading))
    const at = isJump ? time : Math.max(time, now())
    stored = await storeBeat(db, { at, instance, jump })
    anchor = reading
    beatenAt = at
    parted = seenParted
    isUnsure = false
    if (!isJump) return
    latest = at
    onReanchor()
    const [expectedAt, clockAt, heldUntil] = [at - differs, at, stored.heldUntil].map(rfc3339)
    log.warn({ event: 'clock.reanchored', expectedAt, clockAt, heldUntil })
  }

  /** One under way may have read the time before the machine's clock was set, so another one follows it. */
  function beat(): Promise<void> {
    next ??= beating
      .catch(() => undefined)
      .then(() => {
        next = null
        beating = readTime().then((reading) => takeOver(reading ?? anchor, STEP_MS))
        return beating
      })
    return next
  }

  const first = await firstReading(readTime)
  const beatAt = await lastBeatAt(db)
  anchor = beatAt === null ? first : { at: beatAt, monotonic: first.monotonic }
  await takeOver(first, GAP_MS - 1)

  return {
    now,
    monotonic: machine.monotonic,
    /** Whether the store takes writes: it took a beat a moment ago. */
    isBeating: () => now() - beatenAt < GAP_MS,
    /** Reads the time again, and stores that this instance lives. */
    beat,
    /** After a jump or a gap: nothing final may happen now, such as deleting, sealing by age, or revealing. */
    isHeld: () => isUnsure || now() < stored.heldUntil,
    /** After a step back: no invoice is made and nothing is settled now. */
    hasGoneBack: () => isUnsure || now() < stored.backUntil,
    /** Whether other instances live, or died lately. One that starts is known after the next beat. */
    hasOthers: () => stored.hasOthers,
    /** Whether the machine's clock was set, or stood still, since the time was read: `beat` before the next answer. */
    hasParted: () => Math.abs(parting() - parted) > STEP_MS,
    /** When nobody could reach the service, apart from each other, in the order of time. */
    windows(): readonly BlindWindow[] {
      const at = now()
      // Nobody knows yet how long this gap lasts.
      return at - beatenAt < GAP_MS
        ? stored.windows
        : apart([...stored.windows, { beganAt: beatenAt, endedAt: at }])
    },
    /** Stores a window that somebody else has seen, or its new end. */
    async blind(window: BlindWindow): Promise<void> {
      await db.write({ lockKey: 'clock', statements: { window: insertWindow(window) } })
      await beat()
    },
    async close(): Promise<void> {
      await beat().catch(() => undefined)
      const gone = signOff(instance)
      await db.write({ lockKey: 'clock', statements: { gone } }).catch(() => undefined)
    },
  }
}
