/** Opens the provider of GATE. */
import type { Clock } from '../lib/clock.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import type { AllowedHosts } from '../protocol/lnurl.ts'
import { createLnurlClient } from './lnurl-client.ts'
import { createLnurlProvider, createSimulatedProvider, type Provider } from './provider.ts'

/** A provider's invoice must live for at least a minute, even if the quote is shorter. */
const SHORTEST_SIMULATED_SECONDS = 120

/** The provider that pays into Lightning Addresses, or the simulator in its place. */
export function openProvider(deps: {
  simulator: Lightning | null
  allowed: AllowedHosts
  network: Network
  clock: Clock
  quoteSeconds: number
}): Provider {
  const { simulator, allowed, network, clock, quoteSeconds } = deps
  if (simulator) {
    const invoiceSeconds = Math.max(quoteSeconds, SHORTEST_SIMULATED_SECONDS)
    return createSimulatedProvider({ lightning: simulator, allowed, invoiceSeconds, clock })
  }
  return createLnurlProvider({ client: createLnurlClient({ allowed, clock }), network, clock })
}
