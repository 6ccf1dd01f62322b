/** Opens GATE and its provider. Loaded only where GATE is switched on. */

import type { OutboundRules } from '../alerts/outbound-rules.ts'
import { leadsTo } from '../alerts/outbound-rules.ts'
import type { App } from '../http/app.ts'
import type { OpenProduct, ProductParts } from '../http/product.ts'
import { errors } from '../http/schemas.ts'
import type { SteadyClock } from '../lib/clock.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import { createGateChallenges } from './challenge.ts'
import { mountIntents } from './intent-routes.ts'
import { createLnurlClient } from './lnurl-client.ts'
import { mountProofs } from './proof-routes.ts'
import { createLnurlProvider, createSimulatedProvider, type Provider } from './provider.ts'
import { createReceipts } from './receipts.ts'
import { GateJwks } from './schema.ts'
import { createGate } from './service.ts'

/** A provider's invoice must live for at least a minute, even if the quote is shorter. */
const SHORTEST_SIMULATED_SECONDS = 120
const JWKS_MAX_AGE_SECONDS = 300

export async function openGate(
  parts: ProductParts & { outbound: OutboundRules },
): Promise<OpenProduct> {
  const { app, secrets, publicUrl } = parts
  const outbound = { ...parts.outbound, isOurselves: leadsTo(publicUrl) }
  const provider = openProvider({ ...parts, outbound })
  const receipts = await createReceipts(secrets.keys('gate receipt'))
  const service = createGate({ ...parts, provider, receipts })
  const challenges = createGateChallenges({ keys: secrets.keys('gate challenge'), publicUrl })
  const mounting = { ...parts, service, challenges }
  mountIntents(app, mounting)
  mountProofs(app, mounting)
  mountKeys(app, service.jwks)
  return { purge: service.purge, foreign: service.foreign, close: provider.close }
}

/** The provider that pays into Lightning Addresses, or the simulator in its place. */
export function openProvider(deps: {
  simulator: Lightning | null
  outbound: OutboundRules
  network: Network
  clock: SteadyClock
  quoteSeconds: number
}): Provider {
  const { simulator, outbound, network, clock, quoteSeconds } = deps
  if (simulator) {
    const invoiceSeconds = Math.max(quoteSeconds, SHORTEST_SIMULATED_SECONDS)
    const { allowed } = outbound
    return createSimulatedProvider({ lightning: simulator, allowed, invoiceSeconds, clock })
  }
  return createLnurlProvider({ client: createLnurlClient({ ...outbound, clock }), network, clock })
}

function mountKeys(app: App, jwks: GateJwks): void {
  app.get(
    '/.well-known/gate-jwks.json',
    {
      schema: {
        tags: ['gate'],
        isInWholeOnly: true,
        operationId: 'getGateKeys',
        summary: 'The Ed25519 keys that verify GATE receipts',
        description: 'A JWK set. Receipts name the key by its `kid`.',
        response: { 200: GateJwks, ...errors('internal error') },
      },
    },
    async (_request, reply) =>
      reply.header('cache-control', `public, max-age=${JWKS_MAX_AGE_SECONDS}`).send(jwks),
  )
}
