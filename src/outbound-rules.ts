/** What the settings say of requests to servers that strangers name. */
import type { Config } from './config.ts'
import type { OutboundRules } from './outbound/outbound.ts'

/** For the LNURL servers of GATE's projects. */
export const gateOutbound = (config: Config): OutboundRules => ({
  allowed: config.gateAllowedHosts,
  blocked: config.outboundBlockedHosts,
  proxy: config.outboundProxy,
})
