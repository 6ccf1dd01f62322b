/**
 * The one way in which monitors change. The next step is computed from the monitor as it was read, and stored in one
 * unit with everything that follows from it, if the monitor has not changed in between; otherwise it is read again.
 */

import type { Alerts } from '../alerts/alerts.ts'
import type { ServiceClock } from '../db/clock.ts'
import { attempt, type Db, type Statement } from '../db/db.ts'
import { alone, type InTurn } from '../db/leases.ts'
import { equalBytes } from '../lib/bytes.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { SwitchOwner } from '../switches/switches.ts'
import { alertOf } from './alerts.ts'
import type { Timing } from './schedule.ts'
import { isFallingSilent, newLateness } from './state.ts'
import {
  createPulseStore,
  insertPing,
  insertSpell,
  lookLater,
  type MonitorRow,
  updateMonitor,
} from './store.ts'
import { afterTime, type Known, type PulseEvent, type Step, transition } from './transition.ts'

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
  clock: Pick<ServiceClock, 'now' | 'windows' | 'isHeld' | 'beat'>
  sealing: Sealing
  alerts: Pick<Alerts, 'tell' | 'drop' | 'wake'>
  switches: Pick<SwitchOwner, 'timings' | 'onChange' | 'onGone'>
  /** A switch waits for at least so long after its monitor is late. */
  switchWaitMs: number
}

export function createMonitors(deps: MonitorsDeps) {
  const { db, clock, sealing, alerts, switches, switchWaitMs: waitMs } = deps
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
    // As the first event found it, and then as it was stored last.
    let known = queue[0]?.monitor ?? null
    while (queue.length > 0) {
      const some = queue.splice(0, MAX_TOGETHER)
      try {
        const { monitor, after } = await storeTogether(publicId, known, some)
        known = monitor
        for (const [i, { resolve }] of some.entries()) resolve(after[i] ?? null)
      } catch (error) {
        known = null
        for (const { reject } of some) reject(error)
      }
    }
    queues.delete(publicId)
  }

  /**
   * Stores what events make of a monitor.
   * @param known the monitor as it probably is, which need not be read again.
   * @returns the monitor as it is now, and as it was after each of the events, or null where it refuses one.
   */
  async function storeTogether(
    publicId: string,
    known: MonitorRow | null,
    events: readonly Waiting[],
  ): Promise<{ monitor: MonitorRow | null; after: (MonitorRow | null)[] }> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const isFresh = known === null || tries > 0
      const read = isFresh ? await store.monitor(publicId) : known
      // Nothing happens to a suspended one. The unit below is refused if it is suspended meanwhile.
      if (read === null || read.suspended_at !== null) return { monitor: null, after: [] }
      const given = await knownOf(read, isFallingSilent(read))
      let monitor = read
      const steps = events.map(({ monitor: seen, event, at }): Step | null => {
        if (isSignal(event) && !hasSameToken(seen, monitor)) return null
        // The clock may have been set back since.
        const step = transition(monitor, event, { ...given, now: Math.min(at, given.now) })
        if (step) monitor = step.monitor
        return step
      })
      const made = steps.filter((step) => step !== null)
      // It may accept by now what it refused as it was known.
      if (!isFresh && made.length < events.length) continue
      if (monitor === read) return { monitor, after: [] }
      if (await stored(read, made, sealing.statements(publicId, given.now))) {
        sealing.sealed(publicId)
        return {
          monitor: { ...monitor, revision: read.revision + 1 },
          after: steps.map((step) => step?.monitor ?? null),
        }
      }
    }
    throw new Error('a monitor changed each time that it was read')
  }

  async function knownOf(monitor: MonitorRow, isLate: boolean): Promise<Known> {
    const timings = isLate ? await switches.timings(monitor.public_id) : []
    const bound = { timings: timings.map((text): Timing => JSON.parse(text)), waitMs }
    return { now: clock.now(), windows: clock.windows(), bound, isHeld: clock.isHeld() }
  }

  /** Stores steps that follow each other, with all that follows from them. False: the monitor has changed since. */
  async function stored(read: MonitorRow, steps: Step[], seal: Statement[]): Promise<boolean> {
    const { public_id: publicId } = read
    const changes = steps.flatMap((step) => step.changes)
    const done = await attempt(
      db.write({
        lockKey: publicId,
        statements: {
          monitor: updateMonitor(read, steps.at(-1)?.monitor ?? read),
          pings: steps.flatMap(({ ping }) => (ping ? [insertPing(publicId, ping)] : [])),
          spells: steps.flatMap(({ spell }) => (spell ? [insertSpell(publicId, spell)] : [])),
          told: changes.flatMap((change) => {
            const alert = alertOf(change)
            return alert ? alerts.tell(publicId, alert) : []
          }),
          switches: changes.flatMap((change) =>
            switches.onChange({ ...change, publicId, pingCount: change.monitor.ping_count }),
          ),
          seal,
        },
      }),
    )
    if ('rows' in done && changes.length > 0) alerts.wake()
    return 'rows' in done
  }

  /** Looks at a monitor that is due. Mostly it was pinged in time, and only its next look moves. */
  async function look(monitor: MonitorRow): Promise<void> {
    const isLate =
      isFallingSilent(monitor) || newLateness(monitor, clock.now(), clock.windows()) !== null
    const step = afterTime(monitor, await knownOf(monitor, isLate))
    if (step.changes.length === 0) return void (await later(monitor, step.monitor.check_at))
    // One that was pinged meanwhile is still due. Who follows it knows the time of each change.
    await stored(monitor, [step], [])
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
  equalBytes(one.ping_token_hash, other.ping_token_hash)
