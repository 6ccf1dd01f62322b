/**
 * Stores what becomes of monitors. A turn is computed from the monitor as it was read, and stored in one unit
 * with everything that follows from it, if the monitor has not changed in between; otherwise it is read again.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import type { ServiceClock } from '../lib/clock.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { PulseListener } from './changes.ts'
import { storeHistory } from './history-store.ts'
import type { PulseSchedule } from './schema.ts'
import { type Bound, isFallingSilent } from './state.ts'
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
  type Known,
  type Turn,
} from './turns.ts'

/** A monitor that changes more often while it is read is attacked, and its limits are switched off. */
const MAX_TRIES = 100

/**
 * The facts of a monitor that change only with a new ping token, so that they can be remembered. What records a ping
 * asks the store whether the token is still the monitor's: another instance may have replaced it.
 */
export type MonitorFacts = { publicId: string; pingTokenHash: Uint8Array }

export type TurningDeps = {
  db: Db
  hints: Hints
  clock: Pick<ServiceClock, 'now' | 'windows' | 'isHeld'>
  /** What waits for the silence of a monitor. */
  boundTo: (publicId: string) => Promise<Bound>
  sealing: Sealing
  listeners: readonly PulseListener[]
}

const NOTHING: Bound = { timings: [], waitMs: 0 }

export function createTurning(deps: TurningDeps) {
  const { db, hints, clock, boundTo, sealing, listeners } = deps
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

  /** @param make the next turn of a monitor, or null if nothing is to be stored. */
  function turned(
    publicId: string,
    make: (monitor: MonitorRow, known: Known) => Turn | null,
    more: (now: number) => Record<string, Statement | Statement[]>,
  ): Promise<MonitorRow | null> {
    return inTurn(publicId, async () => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const monitor = await store.monitor(publicId)
        // Nothing happens to a suspended one. The unit below is refused if it is suspended meanwhile.
        if (!monitor || monitor.suspended_at !== null) return null
        const bound = isFallingSilent(monitor) ? await boundTo(publicId) : NOTHING
        const now = clock.now()
        const known = { now, windows: clock.windows(), bound, isHeld: clock.isHeld() }
        const turn = make(monitor, known)
        if (!turn) return null
        const done = await attempt(
          db.write({
            lockKey: publicId,
            statements: {
              monitor: turnMonitor(monitor, turn.next),
              history: storeHistory(publicId, turn.history),
              told: turn.changes.flatMap((change) =>
                listeners.flatMap(({ onChange }) => onChange(change)),
              ),
              ...more(now),
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

  /** An owner's change of a monitor that has not ended. It seals the sale. */
  async function changed(
    publicId: string,
    make: (monitor: MonitorRow, known: Known) => Turn | null,
    more: (now: number) => Record<string, Statement> = () => ({}),
  ): Promise<MonitorRow | null> {
    const monitor = await turned(
      publicId,
      (read, known) => (read.expires_at <= known.now ? null : make(read, known)),
      (now) => ({ ...more(now), seal: sealing.statements(publicId, now) }),
    )
    if (monitor) sealing.sealed(publicId)
    return monitor
  }

  return {
    /** Records beats durably, whatever they change. Returns false if the monitor refuses them, or has another token. */
    async beats({ publicId, pingTokenHash }: MonitorFacts, beats: Beats): Promise<boolean> {
      const monitor = await turned(
        publicId,
        (read, known) =>
          Buffer.compare(read.ping_token_hash, pingTokenHash) === 0
            ? afterBeats(read, beats, known)
            : null,
        (now) => ({ seal: sealing.statements(publicId, now) }),
      )
      if (monitor) sealing.sealed(publicId)
      return monitor !== null
    },

    /** Changes the settings. Returns the changed monitor, or null if it has ended. */
    settings: (publicId: string, change: SettingsChange): Promise<MonitorRow | null> =>
      changed(
        publicId,
        (read, known) => afterSettings(read, change, known),
        (now) => ({ changed: changeSettings(publicId, now, change) }),
      ),

    /** Sets a schedule, or null for the interval. Returns false if the monitor has ended, or has none to end. */
    async schedule(publicId: string, schedule: PulseSchedule | null): Promise<boolean> {
      const monitor = await changed(publicId, (read, known) =>
        schedule === null && read.schedule_cron === ''
          ? null
          : afterSchedule(read, schedule, known),
      )
      return monitor !== null
    },

    /** Replaces the hash of the ping token. Returns false if the monitor has ended. */
    async pingToken(publicId: string, pingTokenHash: Uint8Array): Promise<boolean> {
      // Sealed with the token: a repeated sale would hand out the one that pings no more.
      const monitor = await changed(publicId, afterNewToken, () => ({
        token: replacePingToken(publicId, pingTokenHash),
      }))
      return monitor !== null
    },

    /** Stores what time alone has changed. Returns false if nothing has. */
    async time(publicId: string): Promise<boolean> {
      const monitor = await turned(publicId, afterTime, () => ({}))
      if (monitor) hints.notify(publicId)
      return monitor !== null
    },
  }
}

export type Turning = ReturnType<typeof createTurning>
