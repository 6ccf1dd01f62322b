/** Monitors in the store. Limits and states are conditions of the statements that change them. */
import type { Db, Row, Statement } from '../db/db.ts'
import type { DeletionTime } from '../lib/clock.ts'
import type { PlanId } from '../lib/product-names.ts'

/** How many ping times are stored, the newest ones. */
export const RECENT_HEARTBEATS = 100
/** Unix milliseconds have 13 digits until the year 2286. */
const TIME_DIGITS = 13

export type MonitorRow = {
  public_id: string
  public_status_id: string
  plan_id: PlanId
  owner_token_hash: Uint8Array
  ping_token_hash: Uint8Array
  heartbeat_limit: number
  minimum_grace_seconds: number
  name: Uint8Array
  description: Uint8Array
  expected_interval_seconds: number
  grace_seconds: number
  public_status_enabled: number
  settings_changed_at: number
  accepted_heartbeat_count: number
  last_ping_at: number | null
  recent_heartbeats: string
  state_since: number
  created_at: number
  expires_at: number
} & Row

/** A null field stays unchanged. */
export type SettingsChange = {
  name: Uint8Array | null
  description: Uint8Array | null
  expectedIntervalSeconds: number | null
  graceSeconds: number | null
  publicStatusEnabled: number | null
  /** A new id for sharing, in case that this change ends the sharing under the present one. */
  nextPublicStatusId: string
}

const deadline = (interval: string, grace: string): string =>
  `last_ping_at + (${interval} + ${grace}) * 1000`
const OLD_DEADLINE = deadline('expected_interval_seconds', 'grace_seconds')
const NEW_DEADLINE = deadline(
  'coalesce($5, expected_interval_seconds)',
  'coalesce($6, grace_seconds)',
)

export const insertMonitor = (monitor: {
  publicId: string
  publicStatusId: string
  planId: string
  ownerTokenHash: Uint8Array
  pingTokenHash: Uint8Array
  heartbeatLimit: number
  minimumGraceSeconds: number
  expectedIntervalSeconds: number
  graceSeconds: number
  createdAt: number
  expiresAt: number
}): Statement => ({
  text: `insert into pulse_monitor
    (public_id, public_status_id, plan_id, owner_token_hash, ping_token_hash, heartbeat_limit,
     minimum_grace_seconds, name, description, expected_interval_seconds, grace_seconds,
     public_status_enabled, settings_changed_at, accepted_heartbeat_count, recent_heartbeats,
     state_since, created_at, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, 0, $11, 0, '', $11, $11, $12)`,
  values: [
    monitor.publicId,
    monitor.publicStatusId,
    monitor.planId,
    monitor.ownerTokenHash,
    monitor.pingTokenHash,
    monitor.heartbeatLimit,
    monitor.minimumGraceSeconds,
    new Uint8Array(),
    monitor.expectedIntervalSeconds,
    monitor.graceSeconds,
    monitor.createdAt,
    monitor.expiresAt,
  ],
  expect: 1,
})

const ACCEPT_PINGS = `update pulse_monitor
  set accepted_heartbeat_count = accepted_heartbeat_count + $2,
      state_since = case when last_ping_at is null or ${OLD_DEADLINE} <= $3
        then $3 else state_since end,
      last_ping_at = $4,
      recent_heartbeats = substr($6 || recent_heartbeats, 1, ${RECENT_HEARTBEATS * TIME_DIGITS})
  where public_id = $1 and expires_at > $5 and accepted_heartbeat_count + $2 <= heartbeat_limit`

/**
 * Accepts pings that came at these times, in their order, if all of them are left. The times are in the
 * monitor's row, so this is one statement, and the counter and the times always agree. The pings come within
 * one turn of the loop, so that none but the first can end a lateness.
 */
export function acceptPings(publicId: string, times: number[]): Statement {
  const recent = times.map((time) => String(time).padStart(TIME_DIGITS, '0')).reverse()
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0]
  return {
    text: ACCEPT_PINGS,
    values: [publicId, times.length, first, last, Math.max(...times), recent.join('')],
    expect: 1,
  }
}

/** The times of `recent_heartbeats`, newest first. */
export function heartbeatTimes(recent: string): number[] {
  return Array.from({ length: recent.length / TIME_DIGITS }, (_, i) =>
    Number(recent.slice(i * TIME_DIGITS, (i + 1) * TIME_DIGITS)),
  )
}

/**
 * Changes the settings of a live monitor. Whoever knows the address of a status must not see it when it is
 * shared again later, so the id is replaced when sharing stops: the id that a status shows while it is off
 * is the one that it will be shared under. If a change makes the monitor late or operational, the new state
 * begins now; otherwise the state keeps its beginning.
 */
export const changeSettings = (
  publicId: string,
  now: number,
  change: SettingsChange,
): Statement => ({
  text: `update pulse_monitor
    set name = coalesce($3, name),
        description = coalesce($4, description),
        expected_interval_seconds = coalesce($5, expected_interval_seconds),
        grace_seconds = coalesce($6, grace_seconds),
        public_status_id = case when $7 = 0 and public_status_enabled = 1
          then $8 else public_status_id end,
        public_status_enabled = coalesce($7, public_status_enabled),
        settings_changed_at = $2,
        state_since = case
          when last_ping_at is null then state_since
          when $2 < ${OLD_DEADLINE} and $2 < ${NEW_DEADLINE} then state_since
          when $2 < ${OLD_DEADLINE} or $2 < ${NEW_DEADLINE} then $2
          when settings_changed_at >= ${OLD_DEADLINE} then state_since
          else ${OLD_DEADLINE} end
    where public_id = $1 and expires_at > $2 returning *`,
  values: [
    publicId,
    now,
    change.name,
    change.description,
    change.expectedIntervalSeconds,
    change.graceSeconds,
    change.publicStatusEnabled,
    change.nextPublicStatusId,
  ],
  expect: 1,
})

/** Deletes a monitor with its settings and heartbeats. */
export const dropMonitor = (publicId: string): Statement => ({
  text: 'delete from pulse_monitor where public_id = $1',
  values: [publicId],
  expect: 1,
})

/** Deletes at most `most` monitors that expired before a time: a large purge would block the writer. */
export const purgeMonitors = (expiredBefore: DeletionTime, most: number): Statement => ({
  text: `delete from pulse_monitor where public_id in (
      select public_id from pulse_monitor where expires_at <= $1 limit $2)
    returning public_id`,
  values: [expiredBefore, most],
})

export function createPulseStore(db: Db) {
  return {
    async monitor(publicId: string): Promise<MonitorRow | null> {
      const [monitor] = await db.read<MonitorRow>(
        'select * from pulse_monitor where public_id = $1',
        publicId,
      )
      return monitor ?? null
    },

    /** The monitor that its owner shares under this id. */
    async shared(publicStatusId: string): Promise<MonitorRow | null> {
      const [monitor] = await db.read<MonitorRow>(
        `select * from pulse_monitor where public_status_id = $1 and public_status_enabled = 1`,
        publicStatusId,
      )
      return monitor ?? null
    },
  }
}
