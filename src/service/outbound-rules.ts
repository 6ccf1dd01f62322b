/** What the settings say of requests to servers that strangers name, and the alerts that keep to it. */
import type { Logger } from 'pino'
import { ALERT_OUTBOUND, type Alerts, createAlerts } from '../alerts/alerts.ts'
import type { Outbound } from '../alerts/outbound.ts'
import type { OutboundRules } from '../alerts/outbound-rules.ts'
import { leadsTo } from '../alerts/outbound-rules.ts'
import type { Inboxes } from '../alerts/send.ts'
import type { Outcome } from '../alerts/store.ts'
import type { Db } from '../db/db.ts'
import type { SteadyClock } from '../lib/clock.ts'
import { lazily } from '../lib/lazily.ts'
import type { Network } from '../lightning/lightning.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { type Config, ConfigError } from './config.ts'

/**
 * Which servers may be called for strangers.
 * @throws ConfigError for exempt servers on mainnet: anybody could make the service call them.
 */
export function outboundRules(config: Config, network: Network | null): OutboundRules {
  const { allowedHosts: allowed, outboundBlockedHosts: blocked, outboundProxy: proxy } = config
  if (network === 'mainnet' && allowed.size > 0) {
    throw new ConfigError('MAYFLY_ALLOWED_HOSTS must be empty on mainnet.')
  }
  return { allowed, blocked, proxy }
}

/**
 * Opens the alerts.
 * @throws ConfigError as `outboundRules` does.
 */
export function openAlerts(
  config: Config,
  deps: {
    db: Db
    secrets: Secrets
    clock: SteadyClock
    log: Logger
    network: Network
    publicUrl: () => string
    inboxes: () => Inboxes | null
    onAttempt?: (outcome: Outcome) => void
  },
): Alerts {
  const isOurselves = leadsTo(deps.publicUrl)
  const rules = { ...outboundRules(config, deps.network), isOurselves }
  const out = config.outbound === 'on' ? laterOutbound(rules) : null
  return createAlerts({ ...deps, rules, out })
}

/** The client is loaded with the first request, which most services never make. */
function laterOutbound(rules: OutboundRules): Outbound {
  let opened: Outbound | null = null
  const open = lazily(async () => {
    const { createOutbound } = await import('../alerts/outbound.ts')
    opened = createOutbound({ ...rules, ...ALERT_OUTBOUND })
    return opened
  })
  return {
    send: async (request) => (await open()).send(request),
    close: async () => opened?.close(),
  }
}
