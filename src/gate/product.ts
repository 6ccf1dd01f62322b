/** GATE's entry. The service does not sell it: payers pay the project. */
import type { OpenProduct, ProductFacts, ProductParts } from '../http/product.ts'
import type { AllowedHosts } from '../protocol/lnurl.ts'
import { createGateChallenges } from './challenge.ts'
import { NEW_INTENTS, NEW_INTENTS_OF_VISITOR } from './limits.ts'
import { openProvider } from './open.ts'
import { createReceipts } from './receipts.ts'
import { mountGate } from './routes.ts'
import { createGate } from './service.ts'

export const GATE: ProductFacts = {
  name: 'gate',
  surface: {
    roots: [{ path: '/.well-known/' }],
    requestHeaders: ['X-Gate-Project', 'X-Gate-Route', 'X-Gate-Method', 'X-Gate-Path'],
    responseHeaders: ['Gate-Receipt'],
  },
  limits: [NEW_INTENTS, NEW_INTENTS_OF_VISITOR],
  schemas: {},
  guide: '',
}

export async function openGate(
  parts: ProductParts & { allowed: AllowedHosts },
): Promise<OpenProduct> {
  const { app, secrets, publicUrl } = parts
  const provider = openProvider(parts)
  const receipts = await createReceipts(secrets.keys('gate receipt'))
  const service = createGate({ ...parts, provider, receipts })
  const challenges = createGateChallenges({ keys: secrets.keys('gate challenge'), publicUrl })
  mountGate(app, { ...parts, service, challenges })
  return { purge: service.purge, foreign: service.foreign, close: provider.close }
}
