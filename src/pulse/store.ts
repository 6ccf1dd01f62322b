/** Monitors, their pings and their late spells in the store. */
import { type Db, insertRow, limitedTo, type Row, type Statement } from '../db/db.ts'
import { utf8 } from '../lib/bytes.ts'
import type { PlanId } from '../lib/product-names.ts'
import type { PulseSchedule } from './schema.ts'

/** Rows of one table that a unit deletes: more would hold up the pings of others. */
const DELETED_TOGETHER = 1_000

/** Times are unix milliseconds. */
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
  schedule: string
  public_status_enabled: number
  accepted_heartbeat_count: number
  ping_count: number
  last_ping_at: number | null
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
} & Row

/** A ping by its number: the first one of a monitor is 1. `run` is JSON of the run that ended with it, or null. */
export type Ping = { number: number; at: number; run: string | null }

/** A time in which a monitor was late, and that is over. One that lasts is told by the monitor alone. */
export type LateSpell = { beganAt: number; endedAt: number; cause: 'silence' | 'failure' }

export const insertMonitor = (monitor: {
  publicId: string
  publicStatusId: string
  planId: string
  ownerTokenHash: Uint8Array
  pingTokenHash: Uint8Array
  heartbeatLimit: number
  minimumGraceSeconds: number
  name?: string
  description?: string
  expectedIntervalSeconds: number
  graceSeconds: number
  schedule?: PulseSchedule | undefined
  isShared?: boolean
  createdAt: number
  expiresAt: number
  checkAt: number
}): Statement =>
  insertRow('pulse_monitor', {
    public_id: monitor.publicId,
    public_status_id: monitor.publicStatusId,
    plan_id: monitor.planId,
    owner_token_hash: monitor.ownerTokenHash,
    ping_token_hash: monitor.pingTokenHash,
    heartbeat_limit: monitor.heartbeatLimit,
    minimum_grace_seconds: monitor.minimumGraceSeconds,
    name: utf8(monitor.name ?? ''),
    description: utf8(monitor.description ?? ''),
    expected_interval_seconds: monitor.expectedIntervalSeconds,
    grace_seconds: monitor.graceSeconds,
    public_status_enabled: Number(monitor.isShared ?? false),
    accepted_heartbeat_count: 0,
    ping_count: 0,
    state_since: monitor.createdAt,
    created_at: monitor.createdAt,
    expires_at: monitor.expiresAt,
    check_at: monitor.checkAt,
    schedule: scheduleText(monitor.schedule ?? null),
  })

export const scheduleText = (schedule: PulseSchedule | null): string =>
  schedule === null ? '' : JSON.stringify(schedule)

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

/** All that a transition may change. Purchases, extensions, suspensions and owner tokens set the other columns. */
const CHANGING = [
  'public_status_id',
  'ping_token_hash',
  'name',
  'description',
  'expected_interval_seconds',
  'grace_seconds',
  'schedule',
  'public_status_enabled',
  'accepted_heartbeat_count',
  'ping_count',
  'last_ping_at',
  'state_since',
  'check_at',
  'late_since',
  'is_silent',
  'rescheduled_at',
  'failed_at',
  'exit_code',
  'is_expiry_told',
  'open_runs',
  'last_run',
] as const satisfies (keyof MonitorRow)[]

const UPDATE = `update pulse_monitor set ${CHANGING.map((column, i) => `${column} = $${i + 3}`).join(', ')},
    revision = revision + 1
  where public_id = $1 and revision = $2`

/** Changes a monitor to its next facts, unless anything has changed it since it was read. */
export const updateMonitor = (
  { public_id, revision }: Pick<MonitorRow, 'public_id' | 'revision'>,
  next: MonitorRow,
): Statement => ({
  text: UPDATE,
  values: [public_id, revision, ...CHANGING.map((column) => next[column])],
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

export const insertPing = (publicId: string, { number, at, run }: Ping): Statement => ({
  text: 'insert into pulse_ping (public_id, number, at, run) values ($1, $2, $3, $4)',
  values: [publicId, number, at, run],
})

export const insertSpell = (
  publicId: string,
  { beganAt, endedAt, cause }: LateSpell,
): Statement => ({
  text: `insert into pulse_late_spell (public_id, began_at, cause, ended_at) values ($1, $2, $3, $4)
    on conflict (public_id, began_at) do update set ended_at = excluded.ended_at`,
  values: [publicId, beganAt, cause, endedAt],
})

/** Holds if the monitor exists, is not suspended and has not ended. Locks its row for the rest of the unit. */
export const existingMonitor = (publicId: string, now: number): Statement => ({
  text: `update pulse_monitor set public_id = public_id
    where public_id = $1 and expires_at > $2 and suspended_at is null`,
  values: [publicId, now],
  expect: 1,
})

/**
 * Ends a monitor for good, at a time that was over before all others: nobody sees it any more, and the purge deletes it.
 * Refused if that was done before.
 */
export const endMonitor = (publicId: string): Statement => ({
  text: `update pulse_monitor set expires_at = 0, check_at = null, revision = revision + 1
    where public_id = $1 and expires_at > 0`,
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

/** Deletes the history of a monitor that has ended, in small units. */
export async function deleteHistory(db: Db, publicId: string): Promise<void> {
  const some = (table: string, key: string): Statement => ({
    text: `delete from ${table} where public_id = $1 and ${key} in (
      select ${key} from ${table} where public_id = $1 order by ${key} limit ${DELETED_TOGETHER})
      returning ${key}`,
    values: [publicId],
  })
  for (;;) {
    const { pings, spells } = await db.write({
      lockKey: publicId,
      statements: {
        pings: some('pulse_ping', 'number'),
        spells: some('pulse_late_spell', 'began_at'),
      },
    })
    if (Math.max(pings.length, spells.length) < DELETED_TOGETHER) return
  }
}

export function createPulseStore(db: Pick<Db, 'read'>) {
  const spellsOf = (rows: Row[]): LateSpell[] =>
    rows.map(({ began_at, ended_at, cause }) => ({
      beganAt: Number(began_at),
      endedAt: Number(ended_at),
      cause: cause as LateSpell['cause'],
    }))

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
        'select * from pulse_monitor where public_status_id = $1 and public_status_enabled = 1',
        publicStatusId,
      )
      return monitor ?? null
    },

    /** The first of the monitors that time alone may have changed. */
    due: (now: number, most: number): Promise<MonitorRow[]> =>
      db.read<MonitorRow>(
        `select * from pulse_monitor where check_at <= $1 order by check_at ${limitedTo(2)}`,
        now,
        most,
      ),

    /** At most so many monitors that expired before a time: a large purge would block the writer. */
    async expired(before: number, most: number): Promise<string[]> {
      const rows = await db.read<{ public_id: string }>(
        `select public_id from pulse_monitor where expires_at <= $1 and ${IS_OVER} ${limitedTo(2)}`,
        before,
        most,
      )
      return rows.map(({ public_id }) => public_id)
    },

    /** The newest pings up to this number, newest first. */
    pings: (publicId: string, upTo: number, most: number): Promise<Ping[]> =>
      db.read<Ping>(
        `select number, at, run from pulse_ping where public_id = $1 and number <= $2
          order by number desc ${limitedTo(3)}`,
        publicId,
        upTo,
        most,
      ),

    /** The newest spells that began before a time. */
    spells: async (publicId: string, before: number, most: number): Promise<LateSpell[]> =>
      spellsOf(
        await db.read(
          `select began_at, ended_at, cause from pulse_late_spell
            where public_id = $1 and began_at < $2
            order by began_at desc ${limitedTo(3)}`,
          publicId,
          before,
          most,
        ),
      ),

    /** The newest spells, back to the one that a time lies in or follows. */
    spellsSince: async (publicId: string, from: number, most: number): Promise<LateSpell[]> =>
      spellsOf(
        await db.read(
          `select began_at, ended_at, cause from pulse_late_spell
            where public_id = $1 and began_at >= (
              select coalesce(max(began_at), 0) from pulse_late_spell
              where public_id = $1 and began_at <= $2)
            order by began_at desc ${limitedTo(3)}`,
          publicId,
          from,
          most,
        ),
      ),
  }
}
