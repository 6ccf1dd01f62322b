/**
 * Stores what becomes of monitors. A turn is computed from the monitor as it was read, and stored in one unit
 * with everything that follows from it, if the monitor has not changed in between; otherwise it is read again.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import type { Clock } from '../lib/clock.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { PulseListener } from './changes.ts'
import type { Fairness } from './fairness.ts'
import { storeHistory } from './history-store.ts'
import type { MonitorFacts } from './jobs.ts'
import type { PulseSchedule } from './schema.ts'
import {
  changeSettings,
  createPulseStore,
  type MonitorRow,
  replacePingToken,
  type SettingsChange,
  turnMonitor,
} from './store.ts'
import {
  afterBeats,
  afterNewToken,
  afterSchedule,
  afterSettings,
  afterTime,
  type Beats,
  type Turn,
} from './turns.ts'
import { STEP_MS, type Watch } from './watch.ts'

/** A monitor that changes more often while it is read is attacked, and its limits are switched off. */
const MAX_TRIES = 100

export type Turning = {
  /** Records beats durably, whatever they change. Returns false if the monitor refuses them, or has another token. */
  beats(job: MonitorFacts, beats: Beats): Promise<boolean>
  /** Changes the settings. Returns the changed monitor, or null if it has ended. */
  settings(publicId: string, change: SettingsChange): Promise<MonitorRow | null>
  /** Sets a schedule, or null for the interval. Returns false if the monitor has ended, or has none to end. */
  schedule(publicId: string, schedule: PulseSchedule | null): Promise<boolean>
  /** Replaces the hash of the ping token. Returns false if the monitor has ended. */
  pingToken(publicId: string, pingTokenHash: Uint8Array): Promise<boolean>
  /** Stores what time alone has changed. Returns false if nothing has. */
  time(publicId: string): Promise<boolean>
}

export type TurningDeps = {
  db: Db
  hints: Hints
  clock: Clock
  watch: Pick<Watch, 'notice' | 'fairness'>
  sealing: Sealing
  listeners: readonly PulseListener[]
}

type Make = (
  monitor: MonitorRow,
  known: { now: number; fairness: Fairness },
) => { turn: Turn; now: number } | null

export function createTurning(deps: TurningDeps): Turning {
  const { db, hints, clock, watch, sealing, listeners } = deps
  const store = createPulseStore(db)
  /** One turn of a monitor at a time, so that those of this instance do not refuse each other. */
  const lasts = new Map<string, Promise<unknown>>()

  function inTurn<T>(publicId: string, work: () => Promise<T>): Promise<T> {
    const done = (lasts.get(publicId) ?? Promise.resolve()).then(work, work)
    lasts.set(publicId, done)
    const forget = (): void => {
      if (lasts.get(publicId) === done) lasts.delete(publicId)
    }
    done.then(forget, forget)
    return done
  }

  function turned(
    publicId: string,
    make: Make,
    more: (now: number) => Record<string, Statement | Statement[]>,
  ): Promise<MonitorRow | null> {
    return inTurn(publicId, async () => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        await watch.notice()
        const monitor = await store.monitor(publicId)
        // Nothing happens to a suspended one. The unit below is refused if it is suspended meanwhile.
        if (!monitor || monitor.suspended_at !== null) return null
        // The time first: what happened to the clock before it was read is known to the fairness.
        const now = clock.now()
        const made = make(monitor, { now, fairness: watch.fairness() })
        if (!made) return null
        const { turn } = made
        const done = await attempt(
          db.write({
            lockKey: publicId,
            statements: {
              monitor: turnMonitor(monitor, turn.next, made.now),
              history: storeHistory(publicId, turn.history),
              told: turn.changes.flatMap((change) =>
                listeners.flatMap(({ onChange }) => onChange(change)),
              ),
              ...more(made.now),
            } as Record<string, Statement | Statement[]>,
          }),
        )
        if (!('rows' in done)) continue
        if (turn.changes.length > 0) for (const { onStored } of listeners) onStored(turn.changes)
        return (done.rows.changed?.[0] as MonitorRow | undefined) ?? turn.next
      }
      throw new Error('a monitor changed each time that it was read')
    })
  }

  return {
    async beats({ publicId, pingTokenHash }, beats) {
      const times = beats.kind === 'pings' ? beats.times : [beats.time]
      const time = times.at(-1) ?? 0
      const monitor = await turned(
        publicId,
        (read, { now, fairness }) => {
          if (Buffer.compare(read.ping_token_hash, pingTokenHash) !== 0) return null
          // The windows of a clock that was ahead end once it is set back, so that no deadline
          // can be judged by the time that a beat had from it.
          const isSetBack = Math.max(...times) - now > STEP_MS
          const turn = afterBeats(read, beats, isSetBack ? { ...fairness, isHeld: true } : fairness)
          return turn && { turn, now: time }
        },
        () => ({ seal: sealing.statements(publicId, time) }),
      )
      if (monitor) sealing.sealed(publicId)
      return monitor !== null
    },

    async settings(publicId, change) {
      const monitor = await turned(
        publicId,
        (read, { now, fairness }) => {
          if (read.expires_at <= now) return null
          return { turn: afterSettings(read, change, { now, fairness }), now }
        },
        (now) => ({
          changed: changeSettings(publicId, now, change),
          seal: sealing.statements(publicId, now),
        }),
      )
      if (monitor) sealing.sealed(publicId)
      return monitor
    },

    async schedule(publicId, schedule) {
      const monitor = await turned(
        publicId,
        (read, { now, fairness }) => {
          if (read.expires_at <= now || (schedule === null && read.schedule_cron === ''))
            return null
          return { turn: afterSchedule(read, schedule, { now, fairness }), now }
        },
        (now) => ({ seal: sealing.statements(publicId, now) }),
      )
      if (monitor) sealing.sealed(publicId)
      return monitor !== null
    },

    async pingToken(publicId, pingTokenHash) {
      const monitor = await turned(
        publicId,
        (read, { now, fairness }) => {
          if (read.expires_at <= now) return null
          return { turn: afterNewToken(read, now, fairness), now }
        },
        (now) => ({
          token: replacePingToken(publicId, pingTokenHash),
          // With the token: a repeated sale would hand out the one that pings no more.
          seal: sealing.statements(publicId, now),
        }),
      )
      if (monitor) sealing.sealed(publicId)
      return monitor !== null
    },

    async time(publicId) {
      const monitor = await turned(
        publicId,
        (read, { now, fairness }) => {
          const turn = afterTime(read, now, fairness)
          return turn && { turn, now }
        },
        () => ({}),
      )
      if (monitor) hints.notify(publicId)
      return monitor !== null
    },
  }
}
