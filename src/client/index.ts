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
import type { OpenedWhisper } from '../protocol/whisper-envelope.ts'
import type { PublicPulseStatus, PulseCapability, PulseCatalog } from '../pulse/schema.ts'
import type { WhisperCatalog } from '../whisper/schema.ts'
import { type CatchClient, type CatchOwner, createCatchClient } from './catch.ts'
import { createGateClient, type GateClient, type GateProject } from './gate.ts'
import { type Ask, createHttp } from './http.ts'
import { createPayments, type Purchase } from './payments.ts'
import {
  createPulseClient,
  type PulseClient,
  type PulseHolder,
  pulsePublicStatus,
} from './pulse.ts'
import { createWhisperClient, type SharedWhisper, type WhisperPurchase } from './whisper.ts'

export type {
  CatchCapability,
  CatchEvent,
  CatchState,
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
export { formatWhisperCode, parseWhisperCode, type WhisperCode } from '../protocol/whisper-code.ts'
export {
  needsPassword,
  type OpenedWhisper,
  openWhisper,
  type SealedWhisper,
  type SealWhisper,
  sealWhisper,
  UnreadableWhisper,
} from '../protocol/whisper-envelope.ts'
export type {
  PublicPulseStatus,
  PulseCapability,
  PulseSettings,
  PulseState,
  PulseStatus,
} from '../pulse/schema.ts'
export type { WhisperCapability } from '../whisper/schema.ts'
export type { CatchClient, CatchOwner, StreamOptions } from './catch.ts'
export { MayflyError } from './errors.ts'
export type { GateClient, GateOutcome, GateProject, ProtectedRequest } from './gate.ts'
export type { PaymentQuote, Purchase } from './payments.ts'
export type { PulseClient, PulseHolder, PulseNews } from './pulse.ts'
export type { SharedWhisper, WhisperPurchase } from './whisper.ts'

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
  products: { catch: CatchCatalog; whisper: WhisperCatalog; pulse: PulseCatalog }
}

export type Mayfly = {
  /** What is on sale, and whether it can be bought now. */
  catalog(): Promise<Catalog>
  /** Buys a webhook inbox. The capability is returned once: save it before anything else. */
  buyCatch(purchase: Purchase): Promise<CatchCapability>
  /** The inbox of a capability. */
  catch(owner: CatchOwner): CatchClient
  /** Buys a heartbeat monitor. The capability is returned once: save it before anything else. */
  buyPulse(purchase: Purchase): Promise<PulseCapability>
  /** The monitor of a capability, or of the part of it that a job holds to ping. */
  pulse(holder: PulseHolder): PulseClient
  /** What the owner of a monitor shares under this id. */
  pulsePublicStatus(publicStatusId: string): Promise<PublicPulseStatus>
  /** Encrypts data here and buys its reads. The share code is returned once: save it. */
  buyWhisper(purchase: WhisperPurchase): Promise<SharedWhisper>
  /** Spends a read and opens what it brought. Before the reveal time: `not revealed`, unspent. */
  readWhisper(code: string, password?: string): Promise<OpenedWhisper>
  /** Spends a read; what it brings can be opened with `openWhisper`, as often as a password takes. */
  fetchWhisper(code: string): Promise<Uint8Array<ArrayBuffer>>
  /** GATE (private beta), for the server of a registered project. */
  gate(project: GateProject): GateClient
}

export function createMayfly({ baseUrl, maxSats, fetch }: MayflyOptions): Mayfly {
  const http = createHttp(baseUrl, fetch ?? ((...request) => globalThis.fetch(...request)))
  const payments = createPayments(http, maxSats ?? DEFAULT_MAX_SATS)
  return {
    catalog: async () => (await http.get({ path: '/api/catalog' })) as Catalog,
    async buyCatch(purchase) {
      return (await payments.buy(planSelection('catch', purchase), purchase)) as CatchCapability
    },
    catch: (owner) => createCatchClient(http, owner),
    async buyPulse(purchase) {
      return (await payments.buy(planSelection('pulse', purchase), purchase)) as PulseCapability
    },
    pulse: (holder) => createPulseClient(http, holder),
    pulsePublicStatus: (publicStatusId) => pulsePublicStatus(http, publicStatusId),
    ...createWhisperClient(http, payments),
    gate: (project) => createGateClient(http, project, { issuer: baseUrl.replace(/\/+$/, '') }),
  }
}

function planSelection(product: 'catch' | 'pulse', { planId }: Purchase): Ask {
  return {
    path: `/api/payments/${product}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ planId }),
  }
}
