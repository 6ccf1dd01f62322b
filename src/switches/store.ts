/** Switches and what they hold shut, in the store. */
import { type Db, places, type Row, type Statement } from '../db/db.ts'

/** Times are unix milliseconds. */
export type BindingRow = {
  monitor_id: string
  monitor_ends_at: number
  bound_at: number
  /** How many pings the monitor had then. */
  bound_ping_count: number
  opened_at: number | null
  dead_at: number | null
} & Row

/** Makes the switch of a monitor, or answers with the one that it has. */
export const makeSwitch = (switchId: string, monitorId: string): Statement => ({
  text: `insert into reveal_switch (switch_id, monitor_id) values ($1, $2)
    on conflict (monitor_id) do update set monitor_id = excluded.monitor_id returning switch_id`,
  values: [switchId, monitorId],
  expect: 1,
})

/** Nothing more is bound to it. Refused if the monitor has none. */
export const retireSwitch = (monitorId: string): Statement => ({
  text: 'delete from reveal_switch where monitor_id = $1',
  values: [monitorId],
  expect: 1,
})

/**
 * Keeps the monitor for an order, whatever becomes of the switch before it is paid. Refused if that is retired. Locks
 * the switch first: another instance may be destroying the monitor, and must find what is reserved. What an
 * earlier order of this key has left, which was never paid and whose row was deleted, is replaced.
 */
export const reserveBinding = (reserved: {
  orderId: string
  switchId: string
  monitorEndsAt: number
  timing: string
  now: number
}): Statement[] => [
  {
    text: 'update reveal_switch set switch_id = switch_id where switch_id = $1',
    values: [reserved.switchId],
    expect: 1,
  },
  {
    text: `insert into reveal_binding (order_id, monitor_id, monitor_ends_at, reserved_at, timing)
      select $1, monitor_id, cast($3 as bigint), cast($4 as bigint), cast($5 as text) from reveal_switch where switch_id = $2
      on conflict (order_id) do update set monitor_id = excluded.monitor_id,
        monitor_ends_at = excluded.monitor_ends_at, reserved_at = excluded.reserved_at,
        timing = excluded.timing
      where reveal_binding.public_id is null`,
    values: [
      reserved.orderId,
      reserved.switchId,
      reserved.monitorEndsAt,
      reserved.now,
      reserved.timing,
    ],
    expect: 1,
  },
]

/**
 * Binds the secret of a paid order. Refused if the switch is dead: a secret that nobody can ever open is not
 * what was paid for.
 */
export const bindSecret = (bound: {
  orderId: string
  publicId: string
  now: number
}): Statement => ({
  text: `update reveal_binding set public_id = $2, bound_at = $3, bound_ping_count =
      (select ping_count from pulse_monitor where pulse_monitor.public_id = reveal_binding.monitor_id)
    where order_id = $1 and public_id is null and dead_at is null and monitor_ends_at > $3`,
  values: [bound.orderId, bound.publicId, bound.now],
  expect: 1,
})

/**
 * A monitor has fallen silent. Opens what it has armed: only a ping after the binding arms, so that a secret
 * is never opened by a silence that began before. Pings are counted, because the clock may have been set since.
 */
export const openArmed = (silent: {
  monitorId: string
  /** How many pings the monitor has had. */
  pingCount: number
  now: number
}): Statement => ({
  text: `update reveal_binding set opened_at = $2
    where monitor_id = $1 and opened_at is null and dead_at is null
      and bound_ping_count < $3`,
  values: [silent.monitorId, silent.now, silent.pingCount],
})

/** These monitors will never fall silent any more. What they have not opened stays shut for good. */
export const killBindings = (monitorIds: readonly string[], now: number): Statement => ({
  text: `update reveal_binding set dead_at = $1
    where monitor_id in (${places(monitorIds, 2)}) and opened_at is null and dead_at is null`,
  values: [now, ...monitorIds],
})

/** The monitor of these bindings lasts longer. */
export const extendBindings = (monitorId: string, monitorEndsAt: number): Statement => ({
  text: `update reveal_binding set monitor_ends_at = $2
    where monitor_id = $1 and monitor_ends_at < $2 and opened_at is null and dead_at is null`,
  values: [monitorId, monitorEndsAt],
})

export const dropSwitches = (monitorIds: readonly string[]): Statement => ({
  text: `delete from reveal_switch where monitor_id in (${places(monitorIds, 1)})`,
  values: [...monitorIds],
})

/** Deletes the bindings of secrets that are forgotten. */
export const dropBindings = (publicIds: readonly string[]): Statement => ({
  text: `delete from reveal_binding where public_id in (${places(publicIds, 1)})`,
  values: [...publicIds],
})

/** Deletes the bindings of orders that were never paid. */
export const dropUnbound = (reservedBefore: number): Statement => ({
  text: 'delete from reveal_binding where public_id is null and reserved_at < $1',
  values: [reservedBefore],
})

/** More than anybody binds at different settings. */
const MAX_TIMINGS = 1_000

/** The timings of a monitor when what waits for it was bound, each once. */
export async function timingsOf(db: Pick<Db, 'read'>, monitorId: string): Promise<string[]> {
  const rows = await db.read<{ timing: string }>(
    `select distinct timing from reveal_binding where monitor_id = $1 and public_id is not null
       and opened_at is null and dead_at is null limit ${MAX_TIMINGS}`,
    monitorId,
  )
  return rows.map(({ timing }) => timing)
}

/** The monitor of a switch, or null if it is unknown or retired. */
export async function monitorOf(db: Pick<Db, 'read'>, switchId: string): Promise<string | null> {
  const [found] = await db.read<{ monitor_id: string }>(
    'select monitor_id from reveal_switch where switch_id = $1',
    switchId,
  )
  return found?.monitor_id ?? null
}

export async function bindingOf(
  db: Pick<Db, 'read'>,
  publicId: string,
): Promise<BindingRow | null> {
  const [found] = await db.read<BindingRow>(
    `select monitor_id, monitor_ends_at, bound_at, bound_ping_count, opened_at, dead_at
     from reveal_binding where public_id = $1`,
    publicId,
  )
  return found ?? null
}
