/** PULSE's entry: what the service needs to sell and run it. */
import type { Alerts } from '../alerts/alerts.ts'
import type { OpenProduct, ProductParts, SoldProductFacts } from '../http/product.ts'
import type { PlanId } from '../lib/product-names.ts'
import { PULSE_GUIDE, PULSE_SKILL } from './guide.ts'
import { createMonitorHealth } from './health.ts'
import { PINGS, PUBLIC_STATUS, SIGNALS } from './limits.ts'
import { SCAN_EVERY_MS } from './monitors.ts'
import { createOutsideCheck, isElsewhere, LOOK_EVERY_MS, lookAt } from './outside.ts'
import { PULSE_PROVISIONING } from './provisioning.ts'
import { mountPulse } from './routes.ts'
import { PULSE_PLANS, PulseCapability, PulseCatalog, PulsePlan } from './schema.ts'
import { createPulse } from './service.ts'
import { PULSE_TAKEDOWN } from './takedown.ts'

export const PULSE: SoldProductFacts<PulsePlan> = {
  name: 'pulse',
  about: 'A heartbeat monitor that turns late when a job stops pinging it.',
  plans: PULSE_PLANS,
  planSchema: PulsePlan,
  provisioning: PULSE_PROVISIONING,
  takedown: PULSE_TAKEDOWN,
  capability: PulseCapability,
  catalog: {
    schema: PulseCatalog,
  },
  surface: { roots: [{ path: '/p/' }], requestHeaders: ['X-Pulse-Settings'], responseHeaders: [] },
  limits: [PINGS, SIGNALS, PUBLIC_STATUS],
  guide: PULSE_GUIDE,
  skill: PULSE_SKILL,
}

export function openPulse(
  parts: ProductParts & {
    plans: Readonly<Record<PlanId, PulsePlan>>
    alerts: Alerts
    outsideUrl: string | null
    /** A switch waits for at least so long after its monitor is late. */
    switchWaitSeconds: number
  },
): OpenProduct {
  const { outsideUrl, switchWaitSeconds } = parts
  const switchWaitMs = switchWaitSeconds * 1000
  const outside =
    outsideUrl === null || !isElsewhere(outsideUrl)
      ? []
      : [
          {
            everyMs: LOOK_EVERY_MS,
            event: 'pulse.look_failed',
            work: createOutsideCheck({ ...parts, look: lookAt(outsideUrl) }),
          },
        ]
  const switches = parts.switches.owner
  parts.switches.askMonitors(createMonitorHealth({ ...parts, waitMs: switchWaitMs }))
  const service = createPulse({ ...parts, switches, switchWaitMs })
  mountPulse(parts.app, { ...parts, service, switches })
  return {
    purge: service.purge,
    repeating: [
      ...outside,
      {
        everyMs: SCAN_EVERY_MS,
        event: 'pulse.scan_failed',
        work: () => service.scan(parts.inTurn),
      },
    ],
  }
}
