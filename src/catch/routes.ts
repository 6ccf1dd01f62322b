/** CATCH over HTTP. Buying is here, sending in `ingest-routes.ts`, the owner in `owner-routes.ts`. */

import type { App } from '../http/app.ts'
import type { IsProxied } from '../http/client-address.ts'
import { mountExtension } from '../http/paid/extension.ts'
import { mountOneUrl } from '../http/paid/one-url.ts'
import { mountPaidRoute, type Paying } from '../http/paid/paid.ts'
import { soldByPlan } from '../http/paid/route.ts'
import type { EventStreams } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import type { PlanId } from '../lib/product-names.ts'
import { mountIngest } from './ingest-routes.ts'
import { mountOwner } from './owner-routes.ts'
import { CatchCapability, type CatchPlan, publicId } from './schema.ts'
import type { CatchService } from './service.ts'
import { stateOf } from './store.ts'

export function mountCatch(
  app: App,
  deps: Paying & {
    service: CatchService
    clock: Clock
    plans: Readonly<Record<PlanId, CatchPlan>>
    isProxied: IsProxied
    streams: EventStreams
  },
): void {
  const { plans, service, clock } = deps
  const about = { summary: 'Buy a webhook inbox', resourceSchema: CatchCapability }
  const route = soldByPlan('catch', about, plans)
  mountPaidRoute(app, deps, route)
  mountOneUrl(app, deps, route)
  mountExtension(app, deps, {
    bought: route,
    noun: 'an inbox',
    kind: 'catch_owner',
    publicId,
    service,
    of: (inbox) => ({
      planId: inbox.plan_id,
      expiresAt: inbox.expires_at,
      isActive: stateOf(inbox, clock.now()) === 'active',
      limits: {
        requestLimit: inbox.request_limit,
        storageLimitBytes: inbox.storage_limit_bytes,
      },
    }),
  })
  mountIngest(app, deps)
  mountOwner(app, deps)
}
