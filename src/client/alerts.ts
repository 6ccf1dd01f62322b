/** The calls for alerts, which are the same for every product that tells. */
import type { AlertSettings, AlertsSet, AlertsStatus } from '../http/alerts/schema.ts'
import type { CallOptions, Calls } from './http.ts'

/**
 * Who is told of what happens, for the owner of a monitor or the holder of a receipt.
 *
 * ```ts
 * const alerts: AlertsClient = monitor
 * await alerts.setAlerts({ destinations: [{ url: 'https://ntfy.sh/my-secret-topic', format: 'ntfy' }] })
 * ```
 */
export type AlertsClient = ReturnType<typeof createAlertsClient>

/** @param calls on what tells, whose alerts are below this path. */
export const createAlertsClient = ({ read, change, remove }: Calls, path: string) => ({
  /** Who is told, and what was sent in the last 24 hours. */
  alerts: (options?: CallOptions) =>
    read<AlertsStatus>(path, ['destinations', 'deliveries'], options),
  /**
   * Sets who is told: at most three https URLs or inboxes. Those that no test has reached are tested: to test again, set
   * the same. The secrets that sign are in this answer alone.
   */
  setAlerts: (settings: AlertSettings, options?: CallOptions) =>
    change<AlertsSet>(['PUT', path], ['destinations'], { json: settings, ...options }),
  /** From now on nobody is told. */
  deleteAlerts: (options?: CallOptions) => remove(path, options),
})
