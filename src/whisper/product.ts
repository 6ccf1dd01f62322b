/** WHISPER's entry: what the service needs to sell and run it. */
import type { Alerts } from '../alerts/alerts.ts'
import type { OpenProduct, ProductParts, SoldProductFacts } from '../http/product.ts'
import type { PlanId } from '../lib/product-names.ts'
import { WHISPER_GUIDE, WHISPER_SKILL } from './guide.ts'
import { READS } from './limits.ts'
import { WHISPER_PROVISIONING } from './provisioning.ts'
import { mountReceipts } from './receipt-routes.ts'
import { createReceipts } from './receipts.ts'
import { mountWhisper } from './routes.ts'
import { WHISPER_PLANS, WhisperCapability, WhisperCatalog, WhisperPlan } from './schema.ts'
import { createWhisper } from './service.ts'
import { WHISPER_TAKEDOWN } from './takedown.ts'
import type { UnpaidBytes } from './unpaid.ts'

export const WHISPER: SoldProductFacts<WhisperPlan> = {
  name: 'whisper',
  about:
    'A secret that you encrypt before uploading it. It can be read a set number of times, from a time you choose.',
  plans: WHISPER_PLANS,
  planSchema: WhisperPlan,
  provisioning: WHISPER_PROVISIONING,
  takedown: WHISPER_TAKEDOWN,
  capability: WhisperCapability,
  catalog: {
    schema: WhisperCatalog,
    entry: { clientEncryption: 'AES-256-GCM' },
  },
  surface: {
    roots: [{ path: '/w/' }],
    requestHeaders: [
      'X-Whisper-Plan',
      'X-Whisper-Max-Bytes',
      'X-Whisper-Read-Limit',
      'X-Whisper-Receipt',
      'X-Whisper-Reveal-At',
      'X-Whisper-Reveal-When',
    ],
    responseHeaders: [],
  },
  limits: [READS],
  guide: WHISPER_GUIDE,
  skill: WHISPER_SKILL,
}

export function openWhisper(
  parts: ProductParts & {
    plans: Readonly<Record<PlanId, WhisperPlan>>
    unpaidBytes: UnpaidBytes
    alerts: Alerts
  },
): OpenProduct {
  const { bindings } = parts.switches
  const service = createWhisper({ ...parts, bindings })
  const receipts = createReceipts({ ...parts, bindings })
  mountWhisper(parts.app, { ...parts, service, bindings })
  mountReceipts(parts.app, { ...parts, receipts })
  return { purge: async (now) => (await service.purge(now)) + (await receipts.purge(now)) }
}
