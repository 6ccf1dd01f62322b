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
import { createHttp, platformFetch } from './http.ts'
import { createPayments, planOrder } from './payments.ts'
import {
  createPulseClient,
  type PulseClient,
  type PulseHolder,
  pulsePublicStatus,
} from './pulse.ts'
import type { Purchase, PurchaseFromWallet } from './purchase.ts'
import type { Wallet } from './wallet.ts'
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
export { type GateKey, type GateReceipt, readGateKeys } from '../protocol/gate-receipt.ts'
export { formatWhisperCode, parseWhisperCode, type WhisperCode } from '../protocol/whisper-code.ts'
export {
  needsPassword,
  type OpenedWhisper,
  openWhisper,
  type SealedWhisper,
  type SealWhisper,
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
export {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from './capability-file.ts'
export type { CatchClient, CatchOwner, NextOptions, StreamOptions } from './catch.ts'
export { MayflyError } from './errors.ts'
export { type EventFilter, matchesFilter } from './event-filter.ts'
export { eventBody, eventUrl, toCurl, toHar, toJsonLines } from './export.ts'
export {
  type GateClient,
  type GateOutcome,
  type GateProject,
  type ProtectedRequest,
  type ReceiptKeys,
  verifyGateReceipt,
} from './gate.ts'
export type { PulseClient, PulseHolder, PulseNews } from './pulse.ts'
export type {
  OnInvoice,
  PaymentFlow,
  PaymentQuote,
  Purchase,
  PurchaseByHand,
  PurchaseByWallet,
  PurchaseFromWallet,
  PurchaseProgress,
  PurchaseTerms,
} from './purchase.ts'
export { type Wallet, WalletError } from './wallet.ts'
export { type ClnWalletOptions, clnWallet } from './wallets/cln.ts'
export { type LndWalletOptions, lndWallet } from './wallets/lnd.ts'
export { type NwcClient, nwcWallet } from './wallets/nwc.ts'
export { type PhoenixdWalletOptions, phoenixdWallet } from './wallets/phoenixd.ts'
export { type SimulatorWalletOptions, simulatorWallet } from './wallets/simulator.ts'
export {
  type SharedWhisper,
  sealWhisper,
  type WhisperPurchase,
  type WhisperTerms,
} from './whisper.ts'

/** What agent wallets take as their ceiling too; every built-in plan is below it. */
const DEFAULT_MAX_SATS = 1000

/**
 * What a client is made of.
 *
 * ```ts
 * const options: MayflyOptions = { baseUrl: 'https://mayfly.example', maxSats: 500 }
 * ```
 */
export type MayflyOptions = {
  /** The service's address, such as `https://mayfly.example`. */
  baseUrl: string
  /** The most that a purchase may cost, in satoshis. Default 1000. */
  maxSats?: number
  /** Pays every purchase that names no other wallet. */
  wallet?: Wallet
  /** The platform's, unless a test or a proxy hands in another. */
  fetch?: typeof globalThis.fetch
}

/**
 * What is on sale: limits, and prices in satoshis, of each product's plans.
 *
 * ```ts
 * const { checkoutEnabled, products } = await mayfly.catalog()
 * console.log(checkoutEnabled, products.pulse.plans[0]?.priceSats)
 * ```
 */
export type Catalog = {
  checkoutEnabled: boolean
  currency: 'sat'
  products: { catch: CatchCatalog; whisper: WhisperCatalog; pulse: PulseCatalog }
}

/**
 * The client of one service without a wallet of its own: each purchase shows its invoice or names a
 * wallet.
 *
 * ```ts
 * const mayfly: Mayfly = createMayfly({ baseUrl })
 * const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice })
 * ```
 */
export type Mayfly = {
  /** What is on sale, and whether it can be bought now. */
  catalog(): Promise<Catalog>
  /**
   * Buys a webhook inbox. The capability is returned once: save it before anything else.
   * @throws MayflyError whose phrase says where the money is, as docs/sdk.md lists them.
   */
  buyCatch(purchase: Purchase): Promise<CatchCapability>
  /** The inbox of a capability. */
  catch(owner: CatchOwner): CatchClient
  /**
   * Buys a heartbeat monitor. The capability is returned once: save it before anything else.
   * @throws MayflyError like `buyCatch`.
   */
  buyPulse(purchase: Purchase): Promise<PulseCapability>
  /** The monitor of a capability, or of the part of it that a job holds to ping. */
  pulse(holder: PulseHolder): PulseClient
  /** What the owner of a monitor shares under this id. */
  pulsePublicStatus(publicStatusId: string): Promise<PublicPulseStatus>
  /**
   * Encrypts data here and buys its reads. The share code is returned once: save it.
   * @throws MayflyError like `buyCatch`.
   */
  buyWhisper(purchase: WhisperPurchase): Promise<SharedWhisper>
  /**
   * Spends a read and opens what it brought.
   * @throws MayflyError, with no read spent: `not revealed` before its time, `password needed`,
   * `invalid share code`, `not found`. UnreadableWhisper where the bytes that came do not open.
   */
  readWhisper(code: string, password?: string): Promise<OpenedWhisper>
  /**
   * Spends a read; what it brings can be opened with `openWhisper`, as often as a password takes.
   * @throws MayflyError like `readWhisper`.
   */
  fetchWhisper(code: string): Promise<Uint8Array<ArrayBuffer>>
  /** GATE (private beta), for the server of a registered project. */
  gate(project: GateProject): GateClient
}

/**
 * The same with a wallet of its own: a purchase needs no `onInvoice`.
 *
 * ```ts
 * const mayfly: PayingMayfly = createMayfly({ baseUrl, wallet })
 * const inbox = await mayfly.buyCatch({ planId: 'spark' })
 * ```
 */
export type PayingMayfly = Omit<Mayfly, 'buyCatch' | 'buyPulse' | 'buyWhisper'> & {
  buyCatch(purchase: PurchaseFromWallet): Promise<CatchCapability>
  buyPulse(purchase: PurchaseFromWallet): Promise<PulseCapability>
  buyWhisper(purchase: WhisperPurchase<PurchaseFromWallet>): Promise<SharedWhisper>
}

/**
 * The client of one service. With a wallet it pays by itself, up to `maxSats` satoshis a purchase.
 *
 * ```ts
 * const mayfly = createMayfly({ baseUrl: 'http://127.0.0.1:8402', wallet, maxSats: 500 })
 * const monitor = await mayfly.buyPulse({ planId: 'spark' })
 * ```
 */
export function createMayfly(options: MayflyOptions & { wallet: Wallet }): PayingMayfly
export function createMayfly(options: MayflyOptions): Mayfly
export function createMayfly({ baseUrl, maxSats, wallet, fetch }: MayflyOptions): PayingMayfly {
  const http = createHttp(baseUrl, fetch ?? platformFetch)
  const payments = createPayments(http, { maxSats: maxSats ?? DEFAULT_MAX_SATS, wallet })
  return {
    catalog: () => http.get<Catalog>({ path: '/api/catalog' }, 'checkoutEnabled', 'products'),
    async buyCatch(purchase) {
      return (await payments.buy(planOrder('catch', purchase.planId), purchase)) as CatchCapability
    },
    catch: (owner) => createCatchClient(http, owner),
    async buyPulse(purchase) {
      return (await payments.buy(planOrder('pulse', purchase.planId), purchase)) as PulseCapability
    },
    pulse: (holder) => createPulseClient(http, holder),
    pulsePublicStatus: (publicStatusId) => pulsePublicStatus(http, publicStatusId),
    ...createWhisperClient(http, payments),
    gate: (project) => createGateClient(http, project, { issuer: baseUrl.replace(/\/+$/, '') }),
  }
}
