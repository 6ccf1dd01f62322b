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
import {
  type BeatState,
  beatUnit,
  firstState,
  GAP_MS,
  knownWindows,
  type ReadTime,
  signOff,
  storeWindow,
} from './clock-store.ts'
import type { Db, Statement } from './db.ts'

/** How often an instance reads the time and says that it lives. */
export const BEAT_EVERY_MS = 5_000
/** A larger difference was a step of the clock, or a machine that slept. */
export const STEP_MS = 5_000
/** Nothing final happens for as long as the jump or the gap was, and at most for so long. */
export const MAX_HOLD_MS = 15 * 60_000

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
  let anchor = { at: 0, monotonic: 0 }
  /** How far wall and monotonic time were apart at the last reading. */
  let parted = parting()
  /** The clock stands still rather than go back by a small difference. */
  let latest = Number.NEGATIVE_INFINITY
  let beatenAt = 0
  let state: BeatState = { beatAt: null, heldUntil: 0, backUntil: 0, windows: '' }
  let windows: BlindWindow[] = []
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

  async function reanchor(differs: number, before: typeof anchor): Promise<void> {
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
      heldUntil: rfc3339(state.heldUntil),
    })
  }

  async function store(jump: { holdMs: number; isBack: boolean } | null): Promise<void> {
    const at = now()
    const known = state.windows
    const isAlone = db.engine === 'sqlite'
    state = await beatUnit(db, { at, instance, isAlone, jump, rewind })
    if (state.windows !== known) windows = apart(await knownWindows(db, at))
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
    const reading = await firstReading(readTime)
    const { beatAt } = await firstState(db)
    anchor = reading
    const differs = beatAt === null ? 0 : reading.at - beatAt
    if (differs >= GAP_MS || differs < -STEP_MS) return reanchor(differs, anchor)
    if (beatAt !== null) latest = beatAt
    await store(null)
  }

  await start()
  return {
    now,
    monotonic: machine.monotonic,
    beat,
    isHeld: () => unsure !== null || now() < state.heldUntil,
    hasGoneBack: () => unsure?.isBack === true || now() < state.backUntil,
    hasParted: () => Math.abs(parting() - parted) > STEP_MS,
    windows() {
      const at = now()
      // Nobody knows yet how long this gap lasts.
      return at - beatenAt < GAP_MS
        ? windows
        : apart([...windows, { beganAt: beatenAt, endedAt: at }])
    },
    async blind(window) {
      await storeWindow(db, window)
      await beat()
    },
    async close() {
      await beat().catch(() => undefined)
      await signOff(db, instance).catch(() => undefined)
    },
  }
}

async function firstReading(readTime: ReadTime): Promise<{ at: number; monotonic: number }> {
  for (let tries = 0; tries < 10; tries++) {
    const reading = await readTime()
    if (reading) return reading
  }
  throw new Error('the database took longer than a second to say the time, ten times')
}
