/** The rules of PULSE: who may do what with a monitor, and what its status says. */
import { randomBytes } from 'node:crypto'
import { attempt, type Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import { createOwnerTokens } from '../http/owner-tokens.ts'
import { rfc3339 } from '../lib/clock.ts'
import { isId, isToken, newId, tokenOf } from '../lib/ids.ts'
import { createSealing } from '../payment/sealing.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'
import { durationSeconds } from './history.ts'
import { createMonitors, type MonitorsDeps } from './monitors.ts'
import { scheduleOf } from './schedule.ts'
import type { PublicPulseStatus, PulseSchedule, PulseSettings, PulseStatus } from './schema.ts'
import { isActive, nextStateChangeAt, type Standing, standingAt, windowsOf } from './state.ts'
import {
  createPulseStore,
  deleteHistory,
  endMonitor,
  type MonitorRow,
  purgeMonitors,
} from './store.ts'
import { type EndedRun, openRuns, type Signal } from './transition.ts'

/** How long the owner sees an expired monitor, and can tell "ended" from "died". */
const SHOW_EXPIRED_MS = 24 * 60 * 60 * 1000
const PURGE_MONITORS = 200
const SHOWN_WINDOWS = 20
const SHOWN_PINGS = 100

export function createPulse(deps: Omit<MonitorsDeps, 'sealing'> & { hints: Hints }) {
  const { db, hints, clock, alerts, switches } = deps
  const store = createPulseStore(db)
  const sealing = createSealing({ db, clock })
  const { apply, scan } = createMonitors({ ...deps, sealing })

  /** Notifies who follows the monitor of a change that was stored. */
  function heard<T extends MonitorRow | null>(changed: T): T {
    if (changed) hints.notify(changed.public_id)
    return changed
  }

  const gone = (publicIds: readonly string[]): Statement[] => [
    ...alerts.drop(publicIds),
    ...switches.onGone(publicIds),
  ]

  /** Nobody sees it any more, or not while it is suspended. */
  const isHidden = ({ expires_at, suspended_at }: MonitorRow): boolean =>
    suspended_at !== null || expires_at + SHOW_EXPIRED_MS <= clock.now()

  async function current(publicId: string): Promise<MonitorRow | null> {
    const monitor = await store.monitor(publicId)
    return monitor && !isHidden(monitor) ? monitor : null
  }

  const tokens = createOwnerTokens({
    db,
    clock,
    sealing,
    kind: 'pulse_owner',
    table: 'pulse_monitor',
    find: async (publicId) => (isId('pulse', publicId) ? current(publicId) : null),
  })

  /** Deletes monitors that ended before a time. The history first: what is left after a crash is found again. */
  async function deleteMonitors(publicIds: readonly string[], endedBefore: number): Promise<void> {
    for (const publicId of publicIds) await deleteHistory(db, publicId)
    await db.write({
      lockKey: publicIds[0] ?? '',
      statements: { monitors: purgeMonitors(publicIds, endedBefore), gone: gone(publicIds) },
    })
  }

  const standing = (monitor: MonitorRow): Standing =>
    standingAt(monitor, clock.now(), clock.windows())

  /** The clock of the instance that took the last ping may be a little ahead. */
  const lastPingAt = ({ last_ping_at: time }: MonitorRow): string | null =>
    timeOrNull(time === null ? null : Math.min(time, clock.now()))

  return {
    /** The monitor that this token pings, or null. */
    async pinged(publicId: string, token: string): Promise<MonitorRow | null> {
      // The store is read only for a well-formed token, so that guesses cost little.
      if (!isToken('pulse_ping', token) || !isId('pulse', publicId)) return null
      const monitor = await store.monitor(publicId)
      if (!monitor || !isActive(monitor, clock.now())) return null
      return isTokenOf('pulse_ping', token, monitor.ping_token_hash) ? monitor : null
    },

    /** Records a ping, or a signal of a run, durably. Returns false if the monitor refuses it. */
    signal: async (monitor: MonitorRow, signal: Signal): Promise<boolean> =>
      heard(await apply(monitor, signal)) !== null,

    /** The monitor, if the token owns it. Null if it is unknown, gone, suspended or owned by another token. */
    owned: tokens.owned,

    /** Whether it exists and is suspended. */
    async isSuspended(publicId: string): Promise<boolean> {
      return ((await store.monitor(publicId))?.suspended_at ?? null) !== null
    },

    /** The monitor as it is now, or null if it was destroyed, deleted or suspended. */
    current,

    /** Seals the delivery after the owner token was used: the sale's answer is not repeated any more. */
    used: (monitor: MonitorRow): Promise<void> => sealing.seal(monitor.public_id),

    hasExpired: (monitor: MonitorRow): boolean => monitor.expires_at <= clock.now(),

    standing,

    async status(monitor: MonitorRow): Promise<PulseStatus> {
      const { state, stateChangedAt, nextExpectedAt, lateAt } = standing(monitor)
      const pings = await store.pings(monitor.public_id, monitor.ping_count, SHOWN_PINGS)
      return {
        publicId: monitor.public_id,
        planId: monitor.plan_id,
        state,
        name: textOf(monitor.name),
        description: textOf(monitor.description),
        expectedIntervalSeconds: monitor.expected_interval_seconds,
        graceSeconds: monitor.grace_seconds,
        schedule: scheduleOf(monitor),
        publicStatusEnabled: monitor.public_status_enabled === 1,
        publicStatusId: monitor.public_status_id,
        heartbeatLimit: monitor.heartbeat_limit,
        acceptedHeartbeatCount: monitor.accepted_heartbeat_count,
        remainingHeartbeats: monitor.heartbeat_limit - monitor.accepted_heartbeat_count,
        lastPingAt: lastPingAt(monitor),
        nextExpectedAt: timeOrNull(nextExpectedAt),
        lateAt: timeOrNull(lateAt),
        stateChangedAt: rfc3339(stateChangedAt),
        createdAt: rfc3339(monitor.created_at),
        expiresAt: rfc3339(monitor.expires_at),
        recentHeartbeats: pings.map(({ at }) => rfc3339(at)),
        blindWindows: windowsOf(monitor, clock.windows())
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
            : { since: rfc3339(monitor.failed_at), exitCode: monitor.exit_code },
        openRuns: openRuns(monitor).map(([rid, startedAt]) => ({
          rid: rid || null,
          startedAt: rfc3339(startedAt),
        })),
        lastRun: lastRunOf(monitor),
      }
    },

    /** When time alone changes the status next, in unix milliseconds, or null. */
    nextChangeAt: (monitor: MonitorRow): number | null =>
      nextStateChangeAt(monitor, clock.now(), clock.windows()),

    /** Changes these settings. Returns the changed monitor, or null if it is gone. */
    async change(monitor: MonitorRow, settings: PulseSettings): Promise<MonitorRow | null> {
      const nextPublicStatusId = newId('pulse_status')
      return heard(await apply(monitor, { kind: 'settings', settings, nextPublicStatusId }))
    },

    /** Sets a schedule, or null for the interval. Returns false if the monitor is gone, or had no schedule. */
    setSchedule: async (monitor: MonitorRow, schedule: PulseSchedule | null): Promise<boolean> =>
      heard(await apply(monitor, { kind: 'schedule', schedule })) !== null,

    /**
     * Makes another token of this kind. A ping token replaces the one before at once, an owner token with its first
     * use. Returns null if the monitor is gone or has another owner token.
     */
    async rotateToken(monitor: MonitorRow, kind: 'owner' | 'ping'): Promise<string | null> {
      if (kind === 'owner') return tokens.offer(monitor)
      const token = tokenOf('pulse_ping', randomBytes(32))
      return heard(await apply(monitor, { kind: 'ping token', hash: tokenHash(token) })) && token
    },

    /** Ends and deletes the monitor now. Returns false if it was gone before. */
    async destroy({ public_id: publicId }: MonitorRow): Promise<boolean> {
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            monitor: endMonitor(publicId),
            gone: gone([publicId]),
            seal: sealing.statements(publicId, clock.now()),
          },
        }),
      )
      if ('refused' in done) return false
      sealing.sealed(publicId)
      hints.notify(publicId)
      // What is left, the purge deletes. The monitor has ended in any case.
      await deleteMonitors([publicId], 0).catch(() => undefined)
      return true
    },

    /** The status that the owner shares under this id, or null if nothing is shared. */
    async publicStatus(publicStatusId: string): Promise<PublicPulseStatus | null> {
      if (!isId('pulse_status', publicStatusId)) return null
      const monitor = await store.shared(publicStatusId)
      if (!monitor || isHidden(monitor)) return null
      return {
        name: textOf(monitor.name),
        description: textOf(monitor.description),
        state: standing(monitor).state,
        lastPingAt: lastPingAt(monitor),
      }
    },

    /**
     * Calls `heard` when a monitor may have changed. Returns the function that stops this, or null if
     * there are too many listeners.
     */
    listen: hints.listen,

    /** Stores what time alone has changed: monitors that are late, silent, or about to expire. */
    scan,

    /** Deletes monitors that expired a day ago. @returns the number of deleted monitors. */
    async purge(now: number): Promise<number> {
      const expiredBefore = now - SHOW_EXPIRED_MS
      let count = 0
      for (;;) {
        const some = await store.expired(expiredBefore, PURGE_MONITORS)
        if (some.length > 0) await deleteMonitors(some, expiredBefore)
        count += some.length
        if (some.length < PURGE_MONITORS) return count
      }
    },
  }
}

export type PulseService = ReturnType<typeof createPulse>

function lastRunOf({ last_run: text }: MonitorRow): PulseStatus['lastRun'] {
  if (text === '') return null
  const run: EndedRun = JSON.parse(text)
  return {
    rid: run.rid,
    result: run.hasFailed ? 'failed' : 'ok',
    exitCode: run.exitCode,
    startedAt: timeOrNull(run.startedAt),
    endedAt: rfc3339(run.endedAt),
    durationSeconds: durationSeconds(run),
  }
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

const timeOrNull = (unixMs: number | null): string | null =>
  unixMs === null ? null : rfc3339(unixMs)
