/**
 * The one way in which monitors change. The next step is computed from the monitor as it was read, and stored in one
 * unit with everything that follows from it, if the monitor has not changed in between; otherwise it is read again.
 */

import type { ServiceClock } from '../db/clock.ts'
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import { alone, type InTurn } from '../db/leases.ts'
import type { Sealing } from '../payment/sealing.ts'
import { type Bound, isFallingSilent, newLateness } from './state.ts'
import {
  createPulseStore,
  insertPing,
  lookLater,
  type MonitorRow,
  storeSpell,
  updateMonitor,
} from './store.ts'
import { type PulseEvent, type PulseListener, type Step, transition } from './transition.ts'

/** A monitor that changes more often while it is read is attacked, and its limits are switched off. */
const MAX_TRIES = 100
/** Few enough that a unit of them is small. */
const MAX_TOGETHER = 64
/** A lateness is noticed within this time, and the time of a scan. */
export const SCAN_EVERY_MS = 2_000
/** Few enough that pings between two batches wait for milliseconds. */
const SCAN_BATCH = 500
/** Batches of one scan: the next one goes on. */
const MAX_BATCHES = 1_000
/** A monitor that cannot be looked at must not hold up the others. */
const LATER_MS = 10_000

const NOTHING: Bound = { timings: [], waitMs: 0 }
const TIME: PulseEvent = { kind: 'time' }

/** An event that waits until those before it are stored. */
type Waiting = {
  /** As it was read when the event came. */
  monitor: MonitorRow
  event: PulseEvent
  /** When it came. */
  at: number
  resolve(changed: MonitorRow | null): void
  reject(error: unknown): void
}

export type MonitorsDeps = {
  db: Db
  hints: Hints
  clock: Pick<ServiceClock, 'now' | 'windows' | 'isHeld' | 'beat'>
  /** What waits for the silence of a monitor. */
  boundTo: (publicId: string) => Promise<Bound>
  sealing: Sealing
  /** They act on changes of monitors. */
  listeners: readonly PulseListener[]
}

export function createMonitors(deps: MonitorsDeps) {
  const { db, hints, clock, boundTo, sealing, listeners } = deps
  const store = createPulseStore(db)
  /** By monitor. Events that come while others are stored are stored together after them. */
  const queues = new Map<string, Waiting[]>()

  /**
   * Stores what an event makes of a monitor, durably.
   * @returns the monitor after it; null if it refuses the event, has ended, or has another ping token meanwhile.
   */
  function apply(monitor: MonitorRow, event: PulseEvent): Promise<MonitorRow | null> {
    return new Promise((resolve, reject) => {
      const one = { monitor, event, at: clock.now(), resolve, reject }
      const queue = queues.get(monitor.public_id)
      if (queue) return void queue.push(one)
      queues.set(monitor.public_id, [one])
      void storeAll(monitor.public_id)
    })
  }

  async function storeAll(publicId: string): Promise<void> {
    const queue = queues.get(publicId) ?? []
    while (queue.length > 0) {
      const some = queue.splice(0, MAX_TOGETHER)
      try {
        const stored = await storeTogether(publicId, some)
        for (const [i, { resolve }] of some.entries()) resolve(stored[i] ?? null)
      } catch (error) {
        for (const { reject } of some) reject(error)
      }
    }
    queues.delete(publicId)
  }

  /** Returns the monitor after each of the events, or null where it refuses one. */
  async function storeTogether(
    publicId: string,
    events: readonly Waiting[],
  ): Promise<(MonitorRow | null)[]> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      // What was read before its turn is mostly out of date when a monitor has many pings, and a refusal is dear.
      const read = await store.monitor(publicId)
      // Nothing happens to a suspended one. The unit below is refused if it is suspended meanwhile.
      if (read === null || read.suspended_at !== null) return []
      const hasTime = events.some(({ event }) => event.kind === 'time')
      const now = clock.now()
      const known = {
        windows: clock.windows(),
        bound: hasTime || isFallingSilent(read) ? await boundTo(publicId) : NOTHING,
        isHeld: clock.isHeld(),
      }
      let monitor = read
      const steps = events.map(({ monitor: seen, event, at }): Step | null => {
        if (isSignal(event) && !hasSameToken(seen, monitor)) return null
        // The clock may have been set back since.
        const step = transition(monitor, event, { ...known, now: Math.min(at, now) })
        if (step) monitor = step.monitor
        return step
      })
      if (monitor === read) return []
      const isUsed = events.some(({ event }, i) => event.kind !== 'time' && steps[i])
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            monitor: updateMonitor(read, monitor),
            follows: steps.flatMap((step) => (step ? followsFrom(publicId, step) : [])),
            seal: isUsed ? sealing.statements(publicId, now) : [],
          },
        }),
      )
      if ('rows' in done) {
        if (isUsed) sealing.sealed(publicId)
        const changes = steps.flatMap((step) => step?.changes ?? [])
        if (changes.length > 0) for (const { onStored } of listeners) onStored(changes)
        return steps.map((step) => step?.monitor ?? null)
      }
    }
    throw new Error('a monitor changed each time that it was read')
  }

  const followsFrom = (publicId: string, { ping, spells, changes }: Step): Statement[] => [
    ...(ping ? [insertPing(publicId, ping)] : []),
    ...spells.map((spell) => storeSpell(publicId, spell)),
    ...changes.flatMap((change) => listeners.flatMap(({ onChange }) => onChange(change))),
  ]

  /** Looks at a monitor that is due. Mostly it was pinged in time, and only its next look moves. */
  async function look(monitor: MonitorRow): Promise<void> {
    const [now, windows] = [clock.now(), clock.windows()]
    const isLate = isFallingSilent(monitor) || newLateness(monitor, now, windows) !== null
    const bound = isLate ? await boundTo(monitor.public_id) : NOTHING
    const step = transition(monitor, TIME, { now, windows, bound, isHeld: clock.isHeld() })
    if (!step || step.changes.length === 0) {
      return void (await later(monitor, step?.monitor.check_at ?? null))
    }
    if (await apply(monitor, TIME)) hints.notify(monitor.public_id)
  }

  const later = (monitor: MonitorRow, checkAt: number | null) =>
    db.write({
      lockKey: monitor.public_id,
      statements: { monitor: lookLater(monitor, checkAt) },
      // If it is lost, the next look comes too early again.
      durability: 'deferred',
    })

  async function scanAll(): Promise<void> {
    for (let batches = 0; batches < MAX_BATCHES; batches++) {
      // Another instance may know already that the clock went back, and have set the pings back with it.
      await clock.beat()
      const now = clock.now()
      const due = await store.due(now, SCAN_BATCH)
      const looks = await Promise.allSettled(due.map(look))
      const failed = looks.flatMap((one, i) =>
        one.status === 'rejected' ? [{ monitor: due[i] as MonitorRow, reason: one.reason }] : [],
      )
      await Promise.all(failed.map(({ monitor }) => later(monitor, now + LATER_MS)))
      if (failed[0]) throw failed[0].reason
      if (due.length < SCAN_BATCH) return
    }
  }

  return {
    apply,

    /**
     * Stores what time alone has changed: monitors that are late, silent, or about to expire. Each has a time to look at
     * it next, in an index. Instances scan in turn, and none takes a turn while no monitor is due.
     */
    async scan(inTurn: InTurn = alone): Promise<void> {
      const [first] = await store.due(clock.now(), 1)
      if (first) await inTurn('pulse.scan', SCAN_EVERY_MS, scanAll)
    },
  }
}

const isSignal = ({ kind }: PulseEvent): boolean =>
  kind === 'ping' || kind === 'start' || kind === 'end'

/** A ping was let in by a token that may have been replaced since. */
const hasSameToken = (one: MonitorRow, other: MonitorRow): boolean =>
  Buffer.compare(one.ping_token_hash, other.ping_token_hash) === 0
