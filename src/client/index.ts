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
import { authorizer } from './authorizer.ts'
import type { AnyCapability } from './capability-file.ts'
import { type CatchClient, type CatchOwner, createCatchClient } from './catch.ts'
import { type Extendable, type Extension, extensionOf, extensionOrder } from './extension.ts'
import { createGateClient, type GateClient, type GateProject } from './gate.ts'
import { type CallOptions, createHttp, platformFetch } from './http.ts'
import { resourceOf } from './order-requests.ts'
import { createPayments, planOrder, type Resumption } from './payments.ts'
import {
  createPulseClient,
  type PulseClient,
  type PulseHolder,
  pulsePublicStatus,
} from './pulse.ts'
import type { Purchase, PurchaseFromWallet, PurchaseTerms } from './purchase.ts'
import type { PurchaseStore } from './record.ts'
import { within } from './wait.ts'
import type { Wallet } from './wallet.ts'
import {
  createWhisperClient,
  type ReceiptClient,
  type ReceiptHolder,
  type SharedWhisper,
  sharedWhisper,
  type WhisperPurchase,
} from './whisper.ts'

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
export type {
  KnownProvider,
  SignatureProvider,
  SignatureRules,
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
export type { PulseClient, PulseHolder, PulseNews, PulseRun } from './pulse.ts'
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
export type {
  PurchaseRecord,
  PurchaseState,
  PurchaseStore,
  RecordedInvoice,
} from './record.ts'
export {
  guessProvider,
  type SignatureCheck,
  type SignatureVerdict,
  verifySignature,
} from './signature.ts'
export { toFetch, toHttpie, toPython } from './snippets.ts'
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
  store?: PurchaseStore
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
export type Mayfly = {
  /** The plans on sale, and whether they can be bought now. */
  catalog(options?: CallOptions): Promise<Catalog>
  /**
   * Buys a webhook inbox. The capability is returned once: save it before anything else.
   * @throws MayflyError whose phrase says where the money is. docs/sdk.md lists them.
   */
  buyCatch(purchase: Purchase): Promise<CatchCapability>
  /** The client of a bought inbox. */
  catch(owner: CatchOwner): CatchClient
  /**
   * Buys a heartbeat monitor. The capability is returned once: save it before anything else.
   * @throws MayflyError like `buyCatch`.
   */
  buyPulse(purchase: Purchase): Promise<PulseCapability>
  /** The client of a bought monitor. A job that only pings needs no owner token. */
  pulse(holder: PulseHolder): PulseClient
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
  extend(held: Extendable, purchase: Purchase): Promise<Extension>
  /**
   * Goes on with a purchase of the store by its key alone: asks the service and the wallet that began it, and pays
   * nothing but the invoice that it was given.
   * @throws MayflyError `order not found` if the store has no such purchase; otherwise like `buyCatch`.
   */
  resume(idempotencyKey: string, terms?: Resumption): Promise<AnyCapability | Extension>
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
  recover(
    proof: { bolt11: string; preimage: string },
    options?: CallOptions,
  ): Promise<AnyCapability | { expiresAt: string }>
  /** The public status that a monitor's owner shares under this id. */
  pulsePublicStatus(publicStatusId: string, options?: CallOptions): Promise<PublicPulseStatus>
  /**
   * Encrypts data locally and buys reads of it. The share code is returned once: save it.
   * @throws MayflyError like `buyCatch`.
   */
  buyWhisper(purchase: WhisperPurchase): Promise<SharedWhisper>
  /**
   * Spends a read and decrypts the content.
   * @throws MayflyError without spending a read: `not revealed` before the reveal time,
   * `password needed`, `invalid share code`, `not found`.
   * @throws UnopenedWhisper after a wrong password: it has the bytes, and opens them with another one.
   */
  readWhisper(code: string, password?: string, options?: CallOptions): Promise<OpenedWhisper>
  /**
   * Spends a read and returns the encrypted bytes. `openWhisper` decrypts them, and can be called
   * again after a wrong password.
   * @throws MayflyError like `readWhisper`.
   */
  fetchWhisper(code: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>>
  /** The receipt of a whisper that was bought with `receipt: true`: when it was read, and destroying it. */
  whisperReceipt(holder: ReceiptHolder): ReceiptClient
  /** The client of GATE (private beta), for the server of a registered project. */
  gate(project: GateProject): GateClient
}

/**
 * The client of one service with a wallet. Its purchases need no `onInvoice`.
 *
 * ```ts
 * const mayfly: PayingMayfly = createMayfly({ baseUrl, wallet })
 * const inbox = await mayfly.buyCatch({ planId: 'spark' })
 * ```
 */
export type PayingMayfly = Omit<Mayfly, 'buyCatch' | 'buyPulse' | 'buyWhisper' | 'extend'> & {
  buyCatch(purchase: PurchaseFromWallet): Promise<CatchCapability>
  buyPulse(purchase: PurchaseFromWallet): Promise<PulseCapability>
  extend(held: Extendable, purchase: PurchaseFromWallet): Promise<Extension>
  buyWhisper(purchase: WhisperPurchase<PurchaseFromWallet>): Promise<SharedWhisper>
}

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
export function createMayfly(options: MayflyOptions): PayingMayfly {
  const { baseUrl, maxSats, wallet, store, fetch } = options
  const http = createHttp(baseUrl, fetch ?? platformFetch)
  const service = baseUrl.replace(/\/+$/, '')
  const payments = createPayments(http, {
    ...{ maxSats: maxSats ?? DEFAULT_MAX_SATS, service, wallet, authorizer, store },
  })
  const whisper = createWhisperClient(http, payments)
  return {
    catalog: (options) =>
      http.get<Catalog>(
        { path: '/api/catalog', ...options, isRepeatable: true },
        ...(['checkoutEnabled', 'products'] as const),
      ),
    async buyCatch(purchase) {
      return (await payments.buy(
        planOrder('catch', purchase.planId),
        limited(purchase),
      )) as CatchCapability
    },
    catch: (owner) => createCatchClient(http, owner),
    async buyPulse(purchase) {
      return (await payments.buy(
        planOrder('pulse', purchase.planId),
        limited(purchase),
      )) as PulseCapability
    },
    pulse: (holder) => createPulseClient(http, holder),
    async extend(held, purchase) {
      return extensionOf(
        await payments.buy(extensionOrder(held, purchase.planId), limited(purchase)),
      )
    },
    async recover(proof, options) {
      const bought = resourceOf(
        await http.answer({
          ...{ method: 'POST', path: '/api/payments/recover', ...options, isRepeatable: true },
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(proof),
        }),
      )
      const { extended, expiresAt } = bought as { extended?: boolean; expiresAt: string }
      return extended ? { expiresAt } : (bought as AnyCapability)
    },
    pulsePublicStatus: (id, options) => pulsePublicStatus(http, id, options),
    ...whisper,
    buyWhisper: (purchase) => whisper.buyWhisper(limited(purchase)),
    async resume(idempotencyKey, terms = {}) {
      // Read before, since a store may drop what was delivered.
      const record = await store?.load(idempotencyKey)
      const bought = await payments.resume(idempotencyKey, limited(terms))
      if (record?.extends !== undefined) return extensionOf(bought)
      return record?.whisper ? sharedWhisper(bought, record.whisper) : (bought as CatchCapability)
    },
    gate: (project) => createGateClient(http, project, { issuer: service }),
  }
}

/** The purchase, ended by its signal or its time. */
function limited<Terms extends Pick<PurchaseTerms, 'signal' | 'timeoutMs'>>(terms: Terms): Terms {
  const signal = within(terms)
  return signal ? { ...terms, signal } : terms
}
