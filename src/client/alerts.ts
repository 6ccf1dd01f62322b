/** The calls for alerts, which are the same for every product that tells. */
import type { AlertSettings, AlertsSet, AlertsStatus } from '../http/alerts/schema.ts'
import type { ApiRequest, CallOptions, Http } from './http.ts'

/**
 * Who is told of what happens, for the owner of a monitor or the holder of a receipt.
 *
 * ```ts
 * const alerts: AlertsClient = monitor
 * await alerts.setAlerts({ destinations: [{ url: 'https://ntfy.sh/my-secret-topic', format: 'ntfy' }] })
 * ```
 */
export type AlertsClient = {
  /** Who is told, and what was sent in the last 24 hours. */
  alerts(options?: CallOptions): Promise<AlertsStatus>
  /**
   * Sets who is told: at most three https URLs or inboxes. Those that are new are tested. The secrets that sign are
   * in this answer alone.
   */
  setAlerts(settings: AlertSettings, options?: CallOptions): Promise<AlertsSet>
  /** Tests the destinations that no test has reached. */
  testAlerts(options?: CallOptions): Promise<AlertsSet>
  /** From now on nobody is told. */
  deleteAlerts(options?: CallOptions): Promise<void>
}

/** @param owner the path of the alerts, and the token that sets them if its holder has it. */
export function createAlertsClient(
  http: Http,
  owner: { path: string; token?: string },
): AlertsClient {
  const { path } = owner
  return {
    alerts: (options) =>
      http.get<AlertsStatus>(
        { ...owner, ...options, isRepeatable: true },
        ...(['destinations', 'deliveries'] as const),
      ),
    setAlerts(settings, options) {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(settings)
      const request: ApiRequest = { ...owner, ...options, method: 'PUT', headers, body }
      return http.get<AlertsSet>(request, 'destinations')
    },
    testAlerts(options) {
      const request: ApiRequest = { ...owner, ...options, method: 'POST', path: `${path}/test` }
      return http.get<AlertsSet>(request, 'destinations')
    },
    deleteAlerts: (options) => http.perform({ ...owner, ...options, method: 'DELETE' }),
  }
}
