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
import type { PulseCapability, PulseCatalog } from '../pulse/schema.ts'
import type { WhisperCatalog } from '../whisper/schema.ts'
import type { AnyCapability } from './capability-file.ts'
import { type CatchOwner, createCatchClient } from './catch.ts'
import {
  type Extendable,
  type Extension,
  extensionOf,
  extensionOrder,
  newEndOf,
} from './extension.ts'
import { createGateClient, type GateProject } from './gate.ts'
import { type CallOptions, createHttp, platformFetch } from './http.ts'
import { planOrder, resourceOf } from './order-requests.ts'
import { createPayments, type Resumption } from './payments.ts'
import { createPulseClient, type PulseHolder, type PulseTerms, pulsePublicStatus } from './pulse.ts'
import { limited, type Purchase, type PurchaseFromWallet } from './purchase.ts'
import type { Order, PurchaseStore } from './record.ts'
import type { Wallet } from './wallet.ts'
import { createWhisperClient, sharedWhisper } from './whisper.ts'

export type {
  CatchCapability,
  CatchEvent,
  CatchRefusals,
  CatchResponse,
  CatchResponseShown,
  CatchState,
  CatchStatus,
  EventPage,
  EventQuery,
  RefusalReason,
} from '../catch/schema.ts'
export type {
  GateAuthorization,
  GatePaymentChallenge,
  GatePending,
  GateQuote,
} from '../gate/schema.ts'
export type { AlertSettings, AlertsSet, AlertsStatus } from '../http/alerts/schema.ts'
export type { NewToken } from '../http/schemas.ts'
export { type GateKey, type GateReceipt, readGateKeys } from '../protocol/gate-receipt.ts'
export type { HmacAlgorithm } from '../protocol/signatures/mac.ts'
export type { HmacScheme } from '../protocol/signatures/schemes.ts'
export {
  guessProvider,
  type KnownProvider,
  type SignatureProvider,
  type SignatureRules,
} from '../protocol/signatures/signatures.ts'
export type { SignatureRule } from '../protocol/signatures/verdict.ts'
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
  PulseHistory,
  PulseHistoryEntry,
  PulseHistoryQuery,
} from '../pulse/history-schema.ts'
export type {
  PublicPulseStatus,
  PulseCapability,
  PulseSchedule,
  PulseSettings,
  PulseState,
  PulseStatus,
  RevealSwitch,
} from '../pulse/schema.ts'
export type { WhisperCapability, WhisperReceipt, WhisperState } from '../whisper/schema.ts'
export type { AlertsClient } from './alerts.ts'
export {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from './capability-file.ts'
export {
  type CatchClient,
  type CatchOwner,
  eventJson,
  type NextOptions,
  type StreamOptions,
} from './catch.ts'
export { MayflyError, type MayflyPhrase } from './errors.ts'
export { type EventFilter, matchesFilter } from './event-filter.ts'
export { eventBody, eventUrl, toCurl, toHar, toJsonLines } from './export.ts'
export type { Extendable, Extension } from './extension.ts'
export {
  type GateClient,
  type GateOutcome,
  type GateProject,
  type ProtectedRequest,
  type ReceiptKeys,
  verifyGateReceipt,
} from './gate.ts'
export type { CallOptions } from './http.ts'
export type { Resumption } from './payments.ts'
export type { PulseClient, PulseHolder, PulseNews, PulseRun, PulseTerms } from './pulse.ts'
export type {
  OnInvoice,
  PaymentQuote,
  Purchase,
  PurchaseFromWallet,
  PurchaseProgress,
  PurchaseTerms,
} from './purchase.ts'
export type {
  PurchaseRecord,
  PurchaseState,
  PurchaseStore,
  RecordedInvoice,
} from './record.ts'
export { type SignatureCheck, type SignatureVerdict, verifySignature } from './signature.ts'
export { type Wallet, type WalletAnswer, WalletError, type WalletPayment } from './wallet.ts'
export { type ClnWalletOptions, clnWallet } from './wallets/cln.ts'
export { type LndWalletOptions, lndWallet } from './wallets/lnd.ts'
export { type NwcClient, nwcWallet } from './wallets/nwc.ts'
export { type PhoenixdWalletOptions, phoenixdWallet } from './wallets/phoenixd.ts'
export { type SimulatorWalletOptions, simulatorWallet } from './wallets/simulator.ts'
export {
  type ReceiptClient,
  type ReceiptHolder,
  type SharedWhisper,
  sealWhisper,
  UnopenedWhisper,
  type WhisperPurchase,
  type WhisperTerms,
} from './whisper.ts'

/** The usual ceiling of agent wallets. Every built-in plan costs less. */
const DEFAULT_MAX_SATS = 1000

/**
 * The options of a client.
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
  /**
   * Keeps each purchase before money moves, so that after a crash nothing is paid twice and nothing that was paid is
   * lost. Without one, both are promised only until the process ends.
   */
  store?: PurchaseStore | undefined
  /** A replacement for the platform's `fetch`, for tests and proxies. */
  fetch?: typeof globalThis.fetch
}

/** The plans of each product that are on sale, with limits and prices in satoshis. */
export type Catalog = {
  checkoutEnabled: boolean
  currency: 'sat'
  products: { catch: CatchCatalog; whisper: WhisperCatalog; pulse: PulseCatalog }
}

/**
 * The client of one service. It has no wallet, so each purchase shows its invoice or names a wallet.
 *
 * ```ts
 * const mayfly: Mayfly = createMayfly({ baseUrl })
 * const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice })
 * ```
 */
export type Mayfly = ReturnType<typeof clientOf<Purchase>>

/**
 * The client of one service with a wallet. Its purchases need no `onInvoice`.
 *
 * ```ts
 * const mayfly: PayingMayfly = createMayfly({ baseUrl, wallet })
 * const inbox = await mayfly.buyCatch({ planId: 'spark' })
 * ```
 */
export type PayingMayfly = ReturnType<typeof clientOf<PurchaseFromWallet>>

/**
 * Creates the client of one service. With a wallet it pays by itself, up to `maxSats` satoshis a
 * purchase.
 *
 * ```ts
 * const mayfly = createMayfly({ baseUrl: 'http://127.0.0.1:8402', wallet, maxSats: 500 })
 * const monitor = await mayfly.buyPulse({ planId: 'spark' })
 * ```
 */
export function createMayfly(options: MayflyOptions & { wallet: Wallet }): PayingMayfly
export function createMayfly(options: MayflyOptions): Mayfly
export function createMayfly(options: MayflyOptions): Mayfly | PayingMayfly {
  return clientOf(options)
}

/** What each purchase has to say of its payment depends on whether the client has a wallet. */
function clientOf<Paid extends PurchaseFromWallet>({
  baseUrl,
  maxSats = DEFAULT_MAX_SATS,
  wallet,
  store,
  fetch,
}: MayflyOptions) {
  const http = createHttp(baseUrl, fetch ?? platformFetch)
  const service = baseUrl.replace(/\/+$/, '')
  const payments = createPayments(http, { maxSats, service, wallet, store })
  const buy = (order: Order, purchase: PurchaseFromWallet) => payments.buy(order, limited(purchase))
  return {
    /** The plans on sale, and whether they can be bought now. */
    catalog: (options?: CallOptions) =>
      http.get<Catalog>({ path: '/api/catalog', ...options, isRepeatable: true }, [
        'checkoutEnabled',
        'products',
      ]),
    /**
     * Buys a webhook inbox. The capability is returned once: save it before anything else.
     * @throws MayflyError whose phrase says where the money is. docs/sdk.md lists them.
     */
    buyCatch: async (purchase: Paid) =>
      (await buy(planOrder('catch', purchase.planId), purchase)) as CatchCapability,
    /** The client of a bought inbox. */
    catch: (owner: CatchOwner) => createCatchClient(http, owner),
    /**
     * Buys a heartbeat monitor. The capability is returned once: save it before anything else.
     * @throws MayflyError like `buyCatch`.
     */
    buyPulse: async (purchase: Paid & PulseTerms) =>
      (await buy(
        planOrder('pulse', purchase.planId, purchase.settings),
        purchase,
      )) as PulseCapability,
    /** The client of a bought monitor. A job that only pings needs no owner token. */
    pulse: (holder: PulseHolder) => createPulseClient(http, holder),
    /**
     * Extends an inbox or a monitor before it ends, by the time and the limits of the plan that it was bought under. If
     * it ended before the payment, the plan is sold anew, to proof of the payment: a wallet's, or `preimage`.
     *
     * ```ts
     * const bought = await mayfly.buyCatch({ planId: 'spark', onInvoice })
     * const done = await mayfly.extend(bought, { planId: 'spark', onInvoice })
     * if ('expiresAt' in done) console.log(done.expiresAt)
     * ```
     * @throws MayflyError `cannot be extended` before an invoice; otherwise like `buyCatch`.
     */
    extend: async (held: Extendable, purchase: Paid) =>
      extensionOf(await buy(extensionOrder(held, purchase.planId), purchase)),
    /**
     * Goes on with a purchase of the store by its key alone: asks the service and the wallet that began it, and pays
     * nothing but the invoice that it was given.
     * @throws MayflyError `order not found` if the store has no such purchase; otherwise like `buyCatch`.
     */
    async resume(
      idempotencyKey: string,
      terms: Resumption = {},
    ): Promise<AnyCapability | Extension> {
      // Read before, since a store may drop what was delivered.
      const record = await store?.load(idempotencyKey)
      const bought = await payments.resume(idempotencyKey, limited(terms))
      if (record?.extends !== undefined) return extensionOf(bought)
      return record?.whisper ? sharedWhisper(bought, record.whisper) : (bought as CatchCapability)
    },
    /**
     * Collects what was bought by the whole invoice and its preimage, 64 hex digits, which most wallets show: for whoever
     * has lost all else. Nobody but the payer knows both.
     *
     * ```ts
     * const found = await mayfly.recover({ bolt11: quote.bolt11, preimage })
     * if ('product' in found) console.log(found.publicId)
     * ```
     * @throws MayflyError `order not found` for an invoice or a preimage that is not right.
     */
    async recover(
      proof: { bolt11: string; preimage: string },
      options?: CallOptions,
    ): Promise<AnyCapability | { expiresAt: string }> {
      const asked = { path: '/api/payments/recover', json: proof, ...options, isRepeatable: true }
      const bought = resourceOf(await http.answer({ method: 'POST', ...asked }))
      return newEndOf(bought) ?? (bought as AnyCapability)
    },
    /** The public status that a monitor's owner shares under this id. */
    pulsePublicStatus: (publicStatusId: string, options?: CallOptions) =>
      pulsePublicStatus(http, publicStatusId, options),
    ...createWhisperClient<Paid>(http, payments),
    /** The client of GATE (private beta), for the server of a registered project. */
    gate: (project: GateProject) => createGateClient(http, project),
  }
}
