/** CATCH's entry: what the service needs to sell and run it. */

import type { Inboxes } from '../alerts/send.ts'
import type { OpenProduct, ProductParts, SoldProductFacts } from '../http/product.ts'
import type { PlanId } from '../lib/product-names.ts'
import { CATCH_GUIDE, CATCH_SKILL } from './guide.ts'
import { createInboxes } from './inboxes.ts'
import { openLocations } from './ip-location.ts'
import { INGEST } from './limits.ts'
import { CATCH_PROVISIONING } from './provisioning.ts'
import { mountCatch } from './routes.ts'
import { CATCH_PLANS, CatchCapability, CatchCatalog, CatchPlan } from './schema.ts'
import { createCatch } from './service.ts'
import { resumeInbox, suspendInbox } from './store.ts'

export const CATCH: SoldProductFacts<CatchPlan> = {
  name: 'catch',
  about: 'A webhook inbox that stores every request exactly as it was sent, for its owner only.',
  plans: CATCH_PLANS,
  planSchema: CatchPlan,
  provisioning: CATCH_PROVISIONING,
  takedown: { kind: 'catch', suspend: suspendInbox, resume: resumeInbox },
  capability: CatchCapability,
  catalog: {
    schema: CatchCatalog,
  },
  surface: {
    roots: [{ path: '/c/', hasRawPaths: true }],
    requestHeaders: [],
    responseHeaders: [],
  },
  limits: Object.values(INGEST),
  guide: CATCH_GUIDE,
  skill: CATCH_SKILL,
}

export async function openCatch(
  parts: ProductParts & {
    plans: Readonly<Record<PlanId, CatchPlan>>
    /** The configured databases. If empty, the installed ones are used. */
    geoipDatabases: readonly string[]
    /** Called with the storage that each accepted request used, in bytes. */
    onIngested: (bytes: number) => void
  },
): Promise<OpenProduct & { inboxes: Inboxes }> {
  const { geoipDatabases, log } = parts
  const service = createCatch({
    ...parts,
    locate: await openLocations(geoipDatabases, (file, error) => {
      log.error({ event: 'geoip.damaged', file, reason: String(error) })
    }),
  })
  mountCatch(parts.app, { ...parts, service })
  const inboxes = createInboxes({ ...parts, service })
  return { purge: service.purge, close: service.close, inboxes }
}
