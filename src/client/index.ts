/**
 * The SDK: buy a capability and use it, with fetch alone.
 *
 * ```ts
 * const mayfly = createMayfly({ baseUrl: 'http://127.0.0.1:8402' })
 * const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice: (quote) => show(quote.bolt11) })
 * for await (const event of mayfly.catch(inbox).events()) console.log(event.method, event.path)
 * ```
 */
import type { CatchCapability, CatchCatalog } from '../catch/schema.ts'
import { type CatchClient, type CatchOwner, createCatchClient } from './catch.ts'
import { createGateClient, type GateClient, type GateProject } from './gate.ts'
import { createHttp } from './http.ts'
import { createPayments, type Purchase } from './payments.ts'

export type {
  CatchCapability,
  CatchEvent,
  CatchStatus,
  EventPage,
  EventQuery,
} from '../catch/schema.ts'
export type {
  GateAuthorization,
  GatePaymentChallenge,
  GatePending,
  GateQuote,
} from '../gate/schema.ts'
export type { GateReceipt } from '../protocol/gate-receipt.ts'
export type { CatchClient, CatchOwner } from './catch.ts'
export { MayflyError } from './errors.ts'
export type { GateClient, GateOutcome, GateProject, ProtectedRequest } from './gate.ts'
export type { PaymentQuote, Purchase } from './payments.ts'

/** What agent wallets take as their ceiling too; every built-in plan is below it. */
const DEFAULT_MAX_SATS = 1000

export type MayflyOptions = {
  baseUrl: string
  /** The most that a purchase may cost, in satoshis. Default 1000. */
  maxSats?: number
  fetch?: typeof globalThis.fetch
}

export type Catalog = {
  checkoutEnabled: boolean
  currency: 'sat'
  products: { catch: CatchCatalog }
}

export type Mayfly = {
  /** What is on sale, and whether it can be bought now. */
  catalog(): Promise<Catalog>
  /** Buys a webhook inbox. The capability is returned once: save it before anything else. */
  buyCatch(purchase: Purchase): Promise<CatchCapability>
  /** The inbox of a capability. */
  catch(owner: CatchOwner): CatchClient
  /** GATE (private beta), for the server of a registered project. */
  gate(project: GateProject): GateClient
}

export function createMayfly({ baseUrl, maxSats, fetch }: MayflyOptions): Mayfly {
  const http = createHttp(baseUrl, fetch ?? ((...request) => globalThis.fetch(...request)))
  const payments = createPayments(http, maxSats ?? DEFAULT_MAX_SATS)
  return {
    catalog: async () => (await http.get({ path: '/api/catalog' })) as Catalog,
    async buyCatch(purchase) {
      const request = {
        path: '/api/payments/catch',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ planId: purchase.planId }),
      }
      return (await payments.buy(request, purchase)) as CatchCapability
    },
    catch: (owner) => createCatchClient(http, owner),
    gate: (project) => createGateClient(http, project, { issuer: baseUrl.replace(/\/+$/, '') }),
  }
}
