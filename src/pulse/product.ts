/** PULSE's entry: what the service needs to sell and run it. */
import type { Alerts } from '../alerts/alerts.ts'
import { AlertSettings, AlertsSet, AlertsStatus } from '../http/alert-schema.ts'
import type { OpenProduct, ProductParts, SoldProductFacts } from '../http/product.ts'
import type { PlanId } from '../lib/product-names.ts'
import { tellOfChanges } from './alerts.ts'
import { COUNT_EVERY_MS, createArrivals } from './arrivals.ts'
import { PULSE_GUIDE, PULSE_SKILL } from './guide.ts'
import { monitorHealth } from './health.ts'
import { PulseHistory } from './history-schema.ts'
import { PINGS, PUBLIC_STATUS, SIGNALS } from './limits.ts'
import { createOutsideCheck, isElsewhere, LOOK_EVERY_MS, lookAt } from './outside.ts'
import { PULSE_PROVISIONING } from './provisioning.ts'
import { mountPulse } from './routes.ts'
import { SCAN_EVERY_MS } from './scanner.ts'
import {
  ListedPulsePlan,
  NewPingToken,
  PULSE_PLANS,
  PublicPulseStatus,
  PulseCapability,
  PulseCatalog,
  PulsePlan,
  PulseSchedule,
  PulseSettings,
  PulseStatus,
  RevealSwitch,
} from './schema.ts'
import { createPulse } from './service.ts'
import { SIGNS_EVERY_MS } from './signs.ts'
import { PULSE_TAKEDOWN } from './takedown.ts'
import { BEAT_EVERY_MS, createWatch } from './watch.ts'

export const PULSE: SoldProductFacts<PulsePlan> = {
  name: 'pulse',
  plans: PULSE_PLANS,
  planSchema: PulsePlan,
  provisioning: PULSE_PROVISIONING,
  takedown: PULSE_TAKEDOWN,
  capability: PulseCapability,
  catalog: {
    schema: PulseCatalog,
    entry: {
      description: 'A heartbeat monitor that turns late when a job stops pinging it.',
    },
  },
  surface: { roots: [{ path: '/p/' }], requestHeaders: [], responseHeaders: [] },
  limits: [PINGS, SIGNALS, PUBLIC_STATUS],
  schemas: {
    PulseCapability,
    PulseSchedule,
    PulseSettings,
    PulseStatus,
    PublicPulseStatus,
    AlertSettings,
    AlertsSet,
    AlertsStatus,
    PulseHistory,
    RevealSwitch,
    NewPingToken,
    PulseCatalog,
    PulsePlan: ListedPulsePlan,
  },
  guide: PULSE_GUIDE,
  skill: PULSE_SKILL,
}

export async function openPulse(
  parts: ProductParts & {
    plans: Readonly<Record<PlanId, PulsePlan>>
    alerts: Alerts
    outsideUrl: string | null
  },
): Promise<OpenProduct> {
  const watch = createWatch(parts)
  // Before the first request: what nobody could ping since the last beat is no lateness.
  await watch.beat()
  const { outsideUrl } = parts
  const outside =
    outsideUrl === null || !isElsewhere(outsideUrl)
      ? []
      : [
          {
            everyMs: LOOK_EVERY_MS,
            event: 'pulse.beat_failed',
            work: createOutsideCheck({ ...parts, watch, look: lookAt(outsideUrl) }),
          },
        ]
  const switches = parts.switches.owner
  parts.switches.askMonitors((monitorId) => monitorHealth({ ...parts, watch }, monitorId))
  const arrivals = createArrivals({ ...parts, watch })
  const listeners = [tellOfChanges(parts.alerts), switches, arrivals.listener]
  const service = createPulse({ ...parts, watch, listeners, onArrival: arrivals.arrived })
  mountPulse(parts.app, { ...parts, service, switches, watch })
  return {
    purge: service.purge,
    repeating: [
      { everyMs: BEAT_EVERY_MS, event: 'pulse.beat_failed', work: watch.beat },
      { everyMs: COUNT_EVERY_MS, event: 'pulse.beat_failed', work: arrivals.look },
      ...outside,
      { everyMs: SIGNS_EVERY_MS, event: 'pulse.signs_failed', work: service.flushSigns },
      {
        everyMs: SCAN_EVERY_MS,
        event: 'pulse.scan_failed',
        work: () => service.scan(parts.inTurn),
      },
    ],
    // So that the window of a planned stop begins with the stop.
    close: () => watch.beat().catch(() => undefined),
  }
}
