/** The rules of PULSE: who may do what with a monitor, and what its status says. */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import { utf8 } from '../lib/bytes.ts'
import { rfc3339, type ServiceClock } from '../lib/clock.ts'
import { isId, newId, tokenOf } from '../lib/ids.ts'
import { timesIn } from '../lib/time-list.ts'
import { createSealing } from '../payment/sealing.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'
import type { PulseListener } from './changes.ts'
import { deleteHistories, deleteHistory, forgetHistory } from './history-store.ts'
import { createJobs, createPinging } from './pinging.ts'
import { lastRun, openRuns } from './runs.ts'
import { createScan } from './scanner.ts'
import type { PublicPulseStatus, PulseSchedule, PulseSettings, PulseStatus } from './schema.ts'
import { type Bound, nextStateChangeAt, standingAt, windowsOf } from './state.ts'
import {
  createPulseStore,
  dropMonitor,
  type MonitorRow,
  offerOwnerToken,
  purgeMonitors,
  type SettingsChange,
  takeOverMonitor,
} from './store.ts'
import { createTurning, type MonitorFacts } from './turning.ts'
import type { Beats } from './turns.ts'

/** How long the owner sees an expired monitor, and can tell "ended" from "died". */
const SHOW_EXPIRED_MS = 24 * 60 * 60 * 1000
const PURGE_MONITORS = 200
/** The newest blind windows that a status shows. */
const SHOWN_WINDOWS = 20

/** What a job sends. Without a rid it has one run at a time. A run that ends without a code has failed. */
export type Signal = { rid: string | null } & (
  | { kind: 'ping' }
  | { kind: 'start' }
  | { kind: 'end'; exitCode: number | null }
)

export type Changed =
  | { kind: 'changed'; monitor: MonitorRow }
  | { kind: 'grace too short'; minimum: number }
  | { kind: 'not found' }

export function createPulse(deps: {
  db: Db
  hints: Hints
  clock: Pick<ServiceClock, 'now' | 'windows' | 'isHeld' | 'beat'>
  /** What waits for the silence of a monitor. */
  boundTo: (publicId: string) => Promise<Bound>
  /** They act on changes of monitors. */
  listeners: readonly PulseListener[]
}) {
  const { db, hints, clock, listeners } = deps
  const store = createPulseStore(db)
  const sealing = createSealing({ db, clock })
  const turning = createTurning({ ...deps, sealing })
  const recorded = createPinging(turning)
  const jobs = createJobs({ store, clock })

  const gone = (publicIds: readonly string[]): Statement[] =>
    listeners.flatMap(({ onGone }) => onGone(publicIds))

  /** Nobody sees it any more, or not while it is suspended. */
  const isHidden = ({ expires_at, suspended_at }: MonitorRow): boolean =>
    suspended_at !== null || expires_at + SHOW_EXPIRED_MS <= clock.now()

  return {
    /** The monitor that this token pings, or null. `ping` checks its limits. */
    pinged: jobs.pinged,

    /** Records a ping, or a signal of a run, durably. Returns false if the monitor refuses it. */
    async signal(facts: MonitorFacts, signal: Signal): Promise<boolean> {
      const { publicId } = facts
      const time = clock.now()
      const isRecorded =
        signal.kind === 'ping' && signal.rid === null
          ? await recorded(facts, time)
          : await turning.beats(facts, beatsOf(signal, time))
      if (!isRecorded) {
        // Exhausted, expired, suspended, destroyed or with another token: what is remembered is out of date.
        jobs.forget(publicId)
        return false
      }
      hints.notify(publicId)
      return true
    },

    /** The monitor, if the token owns it. Null if it is unknown, gone, suspended or owned by another token. */
    async owned(publicId: string, ownerToken: string): Promise<MonitorRow | null> {
      if (!isId('pulse', publicId)) return null
      const monitor = await store.monitor(publicId)
      if (!monitor || isHidden(monitor)) return null
      if (isTokenOf('pulse_owner', ownerToken, monitor.owner_token_hash)) return monitor
      const next = monitor.next_owner_token_hash
      if (next === null || !isTokenOf('pulse_owner', ownerToken, next)) return null
      await attempt(
        db.write({ lockKey: publicId, statements: { token: takeOverMonitor(publicId, next) } }),
      )
      // Two first uses at once: the one that lost owns it all the same.
      const now = await store.monitor(publicId)
      return now && isTokenOf('pulse_owner', ownerToken, now.owner_token_hash) ? now : null
    },

    /** Whether it exists and is suspended. */
    async isSuspended(publicId: string): Promise<boolean> {
      return ((await store.monitor(publicId))?.suspended_at ?? null) !== null
    },

    /** The monitor as it is now, or null if it was destroyed, deleted or suspended. */
    async current(publicId: string): Promise<MonitorRow | null> {
      const monitor = await store.monitor(publicId)
      return monitor && !isHidden(monitor) ? monitor : null
    },

    /** Seals the delivery after the owner token was used: the sale's answer is not repeated any more. */
    used: (monitor: MonitorRow): Promise<void> => sealing.seal(monitor.public_id),

    hasExpired: (monitor: MonitorRow): boolean => monitor.expires_at <= clock.now(),

    status(monitor: MonitorRow): PulseStatus {
      const now = clock.now()
      const windows = clock.windows()
      const { state, stateChangedAt, nextExpectedAt, lateAt } = standingAt(monitor, now, windows)
      // The list of pings is not rewound with a clock that went back.
      const notLater = (time: number): number => Math.min(time, now)
      return {
        publicId: monitor.public_id,
        planId: monitor.plan_id,
        state,
        name: textOf(monitor.name),
        description: textOf(monitor.description),
        expectedIntervalSeconds: monitor.expected_interval_seconds,
        graceSeconds: monitor.grace_seconds,
        schedule:
          monitor.schedule_cron === ''
            ? null
            : {
                cron: monitor.schedule_cron,
                timeZone: monitor.schedule_time_zone,
                graceSeconds: monitor.schedule_grace_seconds,
              },
        publicStatusEnabled: monitor.public_status_enabled === 1,
        publicStatusId: monitor.public_status_id,
        heartbeatLimit: monitor.heartbeat_limit,
        acceptedHeartbeatCount: monitor.accepted_heartbeat_count,
        remainingHeartbeats: monitor.heartbeat_limit - monitor.accepted_heartbeat_count,
        lastPingAt: timeOrNull(monitor.last_ping_at && notLater(monitor.last_ping_at)),
        nextExpectedAt: timeOrNull(nextExpectedAt),
        lateAt: timeOrNull(lateAt),
        stateChangedAt: rfc3339(stateChangedAt),
        createdAt: rfc3339(monitor.created_at),
        expiresAt: rfc3339(monitor.expires_at),
        recentHeartbeats: timesIn(monitor.recent_heartbeats).map((time) => rfc3339(notLater(time))),
        blindWindows: windowsOf(monitor, windows)
          .filter(({ endedAt }) => endedAt > monitor.created_at)
          .slice(-SHOWN_WINDOWS)
          .reverse()
          .map(({ beganAt, endedAt }) => ({
            beganAt: rfc3339(beganAt),
            endedAt: rfc3339(endedAt),
          })),
        failure:
          monitor.failed_at === null
            ? null
            : { since: rfc3339(notLater(monitor.failed_at)), exitCode: monitor.exit_code },
        openRuns: openRuns(monitor.open_runs).map(([rid, startedAt]) => ({
          rid: rid || null,
          startedAt: rfc3339(startedAt),
        })),
        lastRun: lastRunOf(monitor),
      }
    },

    /** When time alone changes the status next, in unix milliseconds, or null. */
    nextChangeAt: (monitor: MonitorRow): number | null =>
      nextStateChangeAt(monitor, clock.now(), clock.windows()),

    async change(monitor: MonitorRow, settings: PulseSettings): Promise<Changed> {
      const { public_id: publicId, minimum_grace_seconds: minimum } = monitor
      if (settings.graceSeconds !== undefined && settings.graceSeconds < minimum) {
        return { kind: 'grace too short', minimum }
      }
      const changed = await turning.settings(publicId, changeOf(settings))
      if (!changed) return { kind: 'not found' }
      hints.notify(publicId)
      return { kind: 'changed', monitor: changed }
    },

    /** Sets a schedule, or null for the interval. Returns false if the monitor is gone, or had no schedule. */
    async setSchedule(
      { public_id: publicId }: MonitorRow,
      schedule: PulseSchedule | null,
    ): Promise<boolean> {
      if (!(await turning.schedule(publicId, schedule))) return false
      hints.notify(publicId)
      return true
    },

    /**
     * Makes another token of this kind. A ping token replaces the one before at once, an owner token with its first
     * use. Returns null if the monitor is gone or has another owner token.
     */
    async rotateToken(monitor: MonitorRow, kind: 'owner' | 'ping'): Promise<string | null> {
      const { public_id: publicId } = monitor
      const token = tokenOf(`pulse_${kind}`, randomBytes(32))
      if (kind === 'owner') {
        const done = await attempt(
          db.write({
            lockKey: publicId,
            statements: {
              token: offerOwnerToken(monitor, tokenHash(token)),
              seal: sealing.statements(publicId, clock.now()),
            },
          }),
        )
        if ('refused' in done) return null
        sealing.sealed(publicId)
        return token
      }
      if (!(await turning.pingToken(publicId, tokenHash(token)))) return null
      jobs.forget(publicId)
      hints.notify(publicId)
      return token
    },

    /** Ends and deletes the monitor now. Returns false if it was gone before. */
    async destroy({ public_id: publicId }: MonitorRow): Promise<boolean> {
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            monitor: dropMonitor(publicId),
            history: forgetHistory([publicId]),
            told: gone([publicId]),
            seal: sealing.statements(publicId, clock.now()),
          },
        }),
      )
      jobs.forget(publicId)
      if ('refused' in done) return false
      sealing.sealed(publicId)
      hints.notify(publicId)
      // What is left, the purge deletes. The monitor is gone in any case.
      await deleteHistory(db, publicId).catch(() => undefined)
      return true
    },

    /** The status that the owner shares under this id, or null if nothing is shared. */
    async publicStatus(publicStatusId: string): Promise<PublicPulseStatus | null> {
      if (!isId('pulse_status', publicStatusId)) return null
      const monitor = await store.shared(publicStatusId)
      if (!monitor || isHidden(monitor)) return null
      const now = clock.now()
      return {
        name: textOf(monitor.name),
        description: textOf(monitor.description),
        state: standingAt(monitor, now, clock.windows()).state,
        lastPingAt: timeOrNull(monitor.last_ping_at && Math.min(monitor.last_ping_at, now)),
      }
    },

    /**
     * Calls `heard` when a monitor may have changed. Returns the function that stops this, or null if
     * there are too many listeners.
     */
    listen: hints.listen,

    /** Stores what time alone has changed: monitors that are late, silent, or about to expire. */
    scan: createScan({ ...deps, turning }),

    /** Deletes monitors that expired a day ago. @returns the number of deleted monitors. */
    async purge(now: number): Promise<number> {
      const expiredBefore = now - SHOW_EXPIRED_MS
      let count = 0
      for (;;) {
        const some = await store.expired(expiredBefore, PURGE_MONITORS)
        if (some.length > 0) {
          await db.write({
            lockKey: 'pulse_monitor',
            statements: {
              monitors: purgeMonitors(some, expiredBefore),
              history: forgetHistory(some),
              told: gone(some),
            },
          })
        }
        count += some.length
        await deleteHistories(db)
        if (some.length < PURGE_MONITORS) return count
      }
    },
  }
}

export type PulseService = ReturnType<typeof createPulse>

function beatsOf(signal: Signal, time: number): Beats {
  const { rid } = signal
  if (signal.kind === 'start') return { kind: 'start', time, rid }
  if (signal.kind === 'end' && signal.exitCode !== 0) {
    return { kind: 'failure', time, rid, exitCode: signal.exitCode }
  }
  return { kind: 'pings', times: [time], rid, isRun: signal.kind === 'end' }
}

function lastRunOf({ last_run }: MonitorRow): PulseStatus['lastRun'] {
  const run = lastRun(last_run)
  if (run === null) return null
  const { rid, startedAt, endedAt, hasFailed, exitCode } = run
  return {
    rid,
    result: hasFailed ? 'failed' : 'ok',
    exitCode,
    startedAt: timeOrNull(startedAt),
    endedAt: rfc3339(endedAt),
    durationSeconds: startedAt === null ? null : Math.max(0, endedAt - startedAt) / 1000,
  }
}

function changeOf(settings: PulseSettings): SettingsChange {
  const { name, description, publicStatusEnabled } = settings
  return {
    name: name === undefined ? null : utf8(name),
    description: description === undefined ? null : utf8(description),
    expectedIntervalSeconds: settings.expectedIntervalSeconds ?? null,
    graceSeconds: settings.graceSeconds ?? null,
    publicStatusEnabled: publicStatusEnabled === undefined ? null : Number(publicStatusEnabled),
    nextPublicStatusId: newId('pulse_status'),
  }
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

const timeOrNull = (unixMs: number | null): string | null =>
  unixMs === null ? null : rfc3339(unixMs)
