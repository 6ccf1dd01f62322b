/**
 * What happens to a monitor, and who stores something with it. Whoever acts on a change (alerts, a secret that
 * waits) adds statements to the unit that stores it, so that the change and what follows from it are stored
 * together or not at all.
 */
import type { Statement } from '../db/db.ts'
import type { PulseState } from './schema.ts'
import type { MonitorRow } from './store.ts'

/**
 * `late`: no ping came in time. `silent`: the lateness lasted until it opens what waits for it. `recovered`: the first good ping after
 * `late` or `failed`, or a change of settings that ends a lateness. `failed`: a run reported a failure, and the
 * last one had not. `exhausting`: a tenth of the pings is left. `exhausted`: the last ping was accepted.
 * `expiring`: the monitor ends soon.
 */
export type ChangeType =
  | 'late'
  | 'silent'
  | 'recovered'
  | 'failed'
  | 'exhausting'
  | 'exhausted'
  | 'expiring'

/** Times are unix milliseconds. */
export type PulseChange = {
  type: ChangeType
  publicId: string
  /** When it was noticed: the time of the unit. */
  at: number
  /** Since when it is so: the deadline of `late` and `silent`, otherwise the ping or `at`. */
  since: number
  /** The state after the change, as the owner sees it. */
  state: PulseState
  /** The monitor as it was stored before the change. */
  monitor: MonitorRow
  /** The last ping after the change. */
  lastPingAt: number | null
  /** How many pings there have been after the change, failed runs included and starts not. */
  pingCount: number
  /** The code of a failed run, or null where none was given. */
  exitCode: number | null
}

/**
 * Whoever acts on changes. All of it runs on the instance that stores the change, within its unit or beside it,
 * so none of it may read the store or wait.
 */
export type PulseListener = {
  /** Statements for the unit of a change. They must hold for a monitor that has nothing to tell anybody. */
  onChange(change: PulseChange): Statement[]
  /** Statements for the unit that deletes these monitors, destroyed or expired. */
  onGone(publicIds: readonly string[]): Statement[]
  /** The changes are stored. */
  onStored(changes: readonly PulseChange[]): void
}
