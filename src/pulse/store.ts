/** Monitors in the store. Limits and states are conditions of the statements that change them. */
import { type Db, limitedTo, type Row, type Statement } from '../db/db.ts'
import type { PlanId } from '../lib/product-names.ts'
import { TIME_DIGITS, timeText } from '../lib/time-list.ts'

/** How many ping times are stored, the newest ones. */
export const RECENT_HEARTBEATS = 100

export type MonitorRow = {
  public_id: string
  public_status_id: string
  plan_id: PlanId
  owner_token_hash: Uint8Array
  next_owner_token_hash: Uint8Array | null
  ping_token_hash: Uint8Array
  heartbeat_limit: number
  minimum_grace_seconds: number
  name: Uint8Array
  description: Uint8Array
  expected_interval_seconds: number
  grace_seconds: number
  schedule_cron: string
  schedule_time_zone: string
  schedule_grace_seconds: number
  public_status_enabled: number
  settings_changed_at: number
  accepted_heartbeat_count: number
  last_ping_at: number | null
  recent_heartbeats: string
  state_since: number
  created_at: number
  expires_at: number
  check_at: number | null
  revision: number
  late_since: number | null
  is_silent: number
  rescheduled_at: number
  failed_at: number | null
  exit_code: number | null
  is_expiry_told: number
  open_runs: string
  last_run: string
  suspended_at: number | null
  suspensions: string
  armed_at: number | null
  chunk_count: number
  untimed_heartbeat_count: number
  late_ms: number
} & Row

/** What decides whether a monitor has changed, without its texts and times. */
export type DueMonitor = Pick<
  MonitorRow,
  | 'public_id'
  | 'heartbeat_limit'
  | 'accepted_heartbeat_count'
  | 'last_ping_at'
  | 'expected_interval_seconds'
  | 'grace_seconds'
  | 'schedule_cron'
  | 'schedule_time_zone'
  | 'schedule_grace_seconds'
  | 'rescheduled_at'
  | 'late_since'
  | 'failed_at'
  | 'state_since'
  | 'created_at'
  | 'expires_at'
  | 'check_at'
  | 'revision'
  | 'is_silent'
  | 'is_expiry_told'
  | 'suspensions'
>
const DUE_COLUMNS = `public_id, heartbeat_limit, accepted_heartbeat_count, last_ping_at,
  expected_interval_seconds, grace_seconds, schedule_cron, schedule_time_zone, schedule_grace_seconds,
  rescheduled_at, late_since, failed_at, state_since,
  created_at, expires_at, check_at, revision, is_silent, is_expiry_told, suspensions`

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
  checkAt: number
}): Statement => ({
  text: `insert into pulse_monitor
    (public_id, public_status_id, plan_id, owner_token_hash, ping_token_hash, heartbeat_limit,
     minimum_grace_seconds, name, description, expected_interval_seconds, grace_seconds,
     public_status_enabled, settings_changed_at, accepted_heartbeat_count, recent_heartbeats,
     state_since, created_at, expires_at, check_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, 0, $11, 0, '', $11, $11, $12, $13)`,
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
    monitor.checkAt,
  ],
  expect: 1,
})

/** Extends a monitor that accepts pings, unless it was extended since it was read. */
export const extendMonitor = (extended: {
  publicId: string
  /** As it was read. */
  endsAt: number
  expiresAt: number
  moreHeartbeats: number
  /** When its owner is told of the new end. */
  expiringAt: number
  now: number
}): Statement => ({
  text: `update pulse_monitor set expires_at = $3, heartbeat_limit = heartbeat_limit + $4, is_expiry_told = 0,
      check_at = case when check_at < $5 then check_at else $5 end, revision = revision + 1
    where public_id = $1 and expires_at = $2 and expires_at > $6 and suspended_at is null
      and accepted_heartbeat_count < heartbeat_limit`,
  values: [
    extended.publicId,
    extended.endsAt,
    extended.expiresAt,
    extended.moreHeartbeats,
    extended.expiringAt,
    extended.now,
  ],
  expect: 1,
})

/** The stored times after these, which are in their order. */
export function recentWith(recent: string, times: readonly number[]): string {
  const more = times.map(timeText).reverse()
  return (more.join('') + recent).slice(0, RECENT_HEARTBEATS * TIME_DIGITS)
}

/** What a turn changes. Settings have a statement of their own beside it. */
const TURNED = [
  'accepted_heartbeat_count',
  'last_ping_at',
  'recent_heartbeats',
  'state_since',
  'late_since',
  'is_silent',
  'rescheduled_at',
  'failed_at',
  'exit_code',
  'check_at',
  'is_expiry_told',
  'open_runs',
  'last_run',
  'schedule_cron',
  'schedule_time_zone',
  'schedule_grace_seconds',
  'armed_at',
  'chunk_count',
  'untimed_heartbeat_count',
  'late_ms',
] as const

const TURN = `update pulse_monitor set ${TURNED.map((column, i) => `${column} = $${i + 3}`).join(', ')},
    revision = revision + 1
  where public_id = $1 and revision = $2`

/** Changes a monitor to its next facts, unless anything has changed it since it was read. */
export const turnMonitor = (
  { public_id, revision }: Pick<MonitorRow, 'public_id' | 'revision'>,
  next: MonitorRow,
): Statement => ({
  text: TURN,
  values: [public_id, revision, ...TURNED.map((column) => next[column])],
  expect: 1,
})

/** Looks at a monitor later, unless it has changed since it was read. */
export const lookLater = (
  { public_id, revision }: Pick<MonitorRow, 'public_id' | 'revision'>,
  checkAt: number | null,
): Statement => ({
  text: 'update pulse_monitor set check_at = $3 where public_id = $1 and revision = $2',
  values: [public_id, revision, checkAt],
})

/**
 * Changes the settings of a live monitor. Whoever knows the address of a status must not see it when it is
 * shared again later, so the id is replaced when sharing stops: the id that a status shows while it is off
 * is the one that it will be shared under.
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
        settings_changed_at = $2
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

/** Holds if the monitor exists, is not suspended and has not ended. Locks its row for the rest of the unit. */
export const existingMonitor = (publicId: string, now: number): Statement => ({
  text: `update pulse_monitor set public_id = public_id
    where public_id = $1 and expires_at > $2 and suspended_at is null`,
  values: [publicId, now],
  expect: 1,
})

/** Replaces what the ping token is checked by. For the unit of a turn, which has the condition. */
export const replacePingToken = (publicId: string, pingTokenHash: Uint8Array): Statement => ({
  text: 'update pulse_monitor set ping_token_hash = $2 where public_id = $1',
  values: [publicId, pingTokenHash],
  expect: 1,
})

/** Offers another owner token. Refused if the one that the row was read with owns the monitor no more. */
export const offerOwnerToken = (
  { public_id, owner_token_hash }: Pick<MonitorRow, 'public_id' | 'owner_token_hash'>,
  next: Uint8Array,
): Statement => ({
  text: `update pulse_monitor set next_owner_token_hash = $3
    where public_id = $1 and owner_token_hash = $2`,
  values: [public_id, owner_token_hash, next],
  expect: 1,
})

/** The offered token takes over. Refused if another one was offered since. */
export const takeOverMonitor = (publicId: string, next: Uint8Array): Statement => ({
  text: `update pulse_monitor set owner_token_hash = $2, next_owner_token_hash = null
    where public_id = $1 and next_owner_token_hash = $2`,
  values: [publicId, next],
  expect: 1,
})

/** Deletes a monitor with its settings and heartbeats. */
export const dropMonitor = (publicId: string): Statement => ({
  text: 'delete from pulse_monitor where public_id = $1',
  values: [publicId],
  expect: 1,
})

/** One that is late may still open what waits for its silence: then it has a next look. */
const IS_OVER = '(late_since is null or check_at is null)'

/** Deletes monitors that expired before a time, and open nothing any more. */
export const purgeMonitors = (publicIds: readonly string[], expiredBefore: number): Statement[] =>
  publicIds.map((publicId) => ({
    text: `delete from pulse_monitor where public_id = $1 and expires_at <= $2 and ${IS_OVER}`,
    values: [publicId, expiredBefore],
  }))

export function createPulseStore(db: Pick<Db, 'read'>) {
  return {
    async monitor(publicId: string): Promise<MonitorRow | null> {
      const [monitor] = await db.read<MonitorRow>(
        'select * from pulse_monitor where public_id = $1',
        publicId,
      )
      return monitor ?? null
    },

    /** At most so many monitors that expired before a time: a large purge would block the writer. */
    async expired(before: number, most: number): Promise<string[]> {
      const rows = await db.read<{ public_id: string }>(
        `select public_id from pulse_monitor where expires_at <= $1 and ${IS_OVER} ${limitedTo(2)}`,
        before,
        most,
      )
      return rows.map(({ public_id }) => public_id)
    },

    /** The first of the monitors that time alone may have changed. */
    due: (now: number, most: number): Promise<DueMonitor[]> =>
      db.read<DueMonitor>(
        `select ${DUE_COLUMNS} from pulse_monitor where check_at <= $1 order by check_at ${limitedTo(2)}`,
        now,
        most,
      ),

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

export type PulseStore = ReturnType<typeof createPulseStore>
