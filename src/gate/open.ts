/** Puts GATE together: its provider, its keys, its rules and its routes. */
import type { Db } from '../db/db.ts'
import type { App } from '../http/app.ts'
import type { Limits } from '../http/limits.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import type { AllowedHosts } from '../protocol/lnurl.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { createGateChallenges } from './challenge.ts'
import { createLnurlClient } from './lnurl-client.ts'
import { createLnurlProvider, createSimulatedProvider, type Provider } from './provider.ts'
import { createReceipts } from './receipts.ts'
import { mountGate } from './routes.ts'
import { createGate, type GateService } from './service.ts'

/** A provider's invoice must live for a minute at least, however short the quote is. */
const SHORTEST_SIMULATED_SECONDS = 120

export type OpenGate = { service: GateService; close(): Promise<void> }

export async function openGate(
  app: App,
  deps: {
    db: Db
    /** In place of every provider, where no real money moves. */
    simulator: Lightning | null
    allowed: AllowedHosts
    network: Network
    secrets: Secrets
    limits: Limits
    clock: Clock
    log: Log
    publicUrl: () => string
    quoteSeconds: number
  },
): Promise<OpenGate> {
  const { secrets, clock, limits, publicUrl } = deps
  const provider = openProvider(deps)
  const receipts = await createReceipts(secrets.keys('gate receipt'))
  const service = createGate({ ...deps, provider, receipts })
  const challenges = createGateChallenges({ keys: secrets.keys('gate challenge'), publicUrl })
  mountGate(app, { service, challenges, limits, clock })
  return { service, close: provider.close }
}

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
