/** The calls for alerts, which are the same for every product that tells. */
import type { AlertSettings, AlertsSet, AlertsStatus } from '../http/alerts/schema.ts'
import type { CallOptions, Http } from './http.ts'

/**
 * Who is told of what happens, for the owner of a monitor or the holder of a receipt.
 *
 * ```ts
 * const alerts: AlertsClient = monitor
 * await alerts.setAlerts({ destinations: [{ url: 'https://ntfy.sh/my-secret-topic', format: 'ntfy' }] })
 * ```
 */
export type AlertsClient = ReturnType<typeof createAlertsClient>

/** @param owner the path of the alerts, and the token that sets them if its holder has it. */
export function createAlertsClient(http: Http, owner: { path: string; token?: string }) {
  return {
    /** Who is told, and what was sent in the last 24 hours. */
    alerts: (options?: CallOptions) =>
      http.get<AlertsStatus>(
        { ...owner, ...options, isRepeatable: true },
        ...(['destinations', 'deliveries'] as const),
      ),
    /**
     * Sets who is told: at most three https URLs or inboxes. Those that are new are tested. The secrets that sign are
     * in this answer alone.
     */
    setAlerts: (settings: AlertSettings, options?: CallOptions) =>
      http.get<AlertsSet>({ ...owner, ...options, method: 'PUT', json: settings }, 'destinations'),
    /** Tests the destinations that no test has reached. */
    testAlerts: (options?: CallOptions) =>
      http.get<AlertsSet>(
        { ...owner, ...options, method: 'POST', path: `${owner.path}/test` },
        'destinations',
      ),
    /** From now on nobody is told. */
    deleteAlerts: (options?: CallOptions) =>
      http.perform({ ...owner, ...options, method: 'DELETE' }),
  }
}
