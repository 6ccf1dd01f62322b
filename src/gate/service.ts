/**
 * The rules of GATE: an intent binds one payment to one request, a proof authorizes it once, and
 * the receipt is the same for whoever asks again. The money goes to the project; we see a hash.
 */
import { randomUUID } from 'node:crypto'
import { attempt, type Db } from '../db/db.ts'
import { base62 } from '../lib/base62.ts'
import { before, type Clock, type DeletionTime } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Network } from '../lightning/lightning.ts'
import { LnurlError } from '../protocol/lnurl.ts'
import { provesPayment } from '../protocol/preimage.ts'
import { fingerprints, keyedHash, type Secrets } from '../secrets/secrets.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'
import { isBoundTo, requestDigest } from './binding.ts'
import { isBindable, matchesPattern } from './patterns.ts'
import type { Provider } from './provider.ts'
import { ADMISSION_SECONDS, type Receipts } from './receipts.ts'
import type { VerificationKind } from './schema.ts'
import {
  authorizeIntent,
  claimVerification,
  createGateStore,
  giveBackReceipt,
  INSERTED_INTENT,
  type IntentRow,
  insertIntent,
  NOTED_HASH,
  noteUnhonoured,
  type ProjectRow,
  purgeUnpaid,
  type ReceiptRow,
  renewReceipt,
  type UnhonouredReason,
} from './store.ts'

/**
 * The provider is asked for this long after the end of an invoice: an HTLC may arrive with the last
 * second, and be claimed some blocks later. A preimage proves the payment for as long as the intent
 * is there.
 */
const HONOUR_MS = 10 * 60 * 1000
/**
 * Open intents of one project, and so the most that its credits can be overdrawn by. Far above
 * what the rate limit lets through while an invoice lives, so that nobody can fill it up.
 */
const OPEN_INTENTS_MOST = 10_000
/** How long to wait after the first, second, … question to a provider (LUD-21 has no push). */
const BACK_OFF_MS = [2_000, 3_000, 5_000, 8_000, 15_000]
/** Intents stay this long after their invoice, so that a late repeat or preimage finds its own. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1000
const PURGE_INTENTS = 500
/**
 * A server that fails each time must not work for ever for one payment, and a payer must not have it
 * work for ever. What comes after these is the operator's to judge.
 */
const GIVE_BACKS_MOST = 2
/** Of a proof that proves nothing yet: a wallet shows its preimage within moments of the payment. */
const PROVE_AGAIN_SECONDS = 2

export type ProtectedRequest = {
  routeId: string
  method: string
  /** Path and query. */
  path: string
  bodySha256: string
}

export type Opened =
  /** `isOnOffer` until its quote expires or it was authorized. */
  | { kind: 'quote'; intent: IntentRow; isOnOffer: boolean }
  | { kind: 'invalid binding' }
  | { kind: 'idempotency key reused with a different request' }
  | { kind: 'no credits' }
  | { kind: 'invalid project capability' }
  | { kind: 'too many open'; waitSeconds: number }
  /** The provider gives no invoice that a payer may see. */
  | { kind: 'checkout unavailable' }

export type Proven =
  | { kind: 'authorized'; intent: IntentRow; receipt: ReceiptRow }
  | { kind: 'pending'; intent: IntentRow; retryAfterSeconds: number | null }
  /** The intent is authorized, and not by this. */
  | { kind: 'wrong preimage' }
  /** It is paid, and we cannot do what it was paid for; noted for the operator. */
  | { kind: 'unhonoured' }

export type GateService = {
  /** The project that this capability opens, or null. */
  projectOf(capability: string): Promise<ProjectRow | null>
  /** Creates the intent of this key, or finds it. */
  open(project: ProjectRow, key: string, request: ProtectedRequest): Promise<Opened>
  /** The intent, if it is this project's. */
  intent(projectId: string, intentId: string): Promise<IntentRow | null>
  /** Whether this is the request that the intent was made for, as far as it is told. */
  isBound(intent: IntentRow, request: { method: string; path: string }): boolean
  /** Where the intent stands; asks the provider when it is time to. */
  poll(intent: IntentRow): Promise<Proven>
  /** Authorizes by the preimage of the intent's invoice. */
  prove(intent: IntentRow, preimage: string): Promise<Proven>
  /**
   * The project's server failed the request that this receipt let in: the next proof or poll makes
   * a fresh one. Recorded once however often it is told; refused for any but the newest receipt,
   * and where it happened twice before.
   */
  giveBack(intent: IntentRow, receiptId: string): Promise<'recorded' | 'refused'>
  jwks: Receipts['jwks']
  /** Intents that may still be paid and were made under none of the configured secrets. */
  foreign(): Promise<number>
  /** Deletes what was never paid, long after. @returns how many intents went. */
  purge(now: DeletionTime): Promise<number>
}

export function createGate(deps: {
  db: Db
  provider: Provider
  receipts: Receipts
  secrets: Secrets
  network: Network
  clock: Clock
  log: Log
  publicUrl: () => string
  quoteSeconds: number
}): GateService {
  const { db, provider, receipts, secrets, network, clock, log, publicUrl, quoteSeconds } = deps
  const store = createGateStore(db)
  const opening = new Map<string, Promise<Opened>>()

  /** The intent that a key stands for, under each configured secret, the current one first. */
  function intentIds(projectId: string, key: string): string[] {
    return secrets
      .keys('gate intent')
      .map((secret) => `gate_intent_${base62(keyedHash(secret, projectId, key).subarray(0, 16))}`)
  }

  async function known(ids: string[]): Promise<IntentRow | null> {
    for (const id of ids) {
      const intent = await store.intent(id)
      if (intent) return intent
    }
    return null
  }

  function repeat(intent: IntentRow, request: ProtectedRequest): Opened {
    const { routeId, ...rest } = request
    const binding = { project: intent.project_id, route: routeId, ...rest }
    if (!isBoundTo(intent.request_digest, binding)) {
      return { kind: 'idempotency key reused with a different request' }
    }
    const isOnOffer = intent.state === 'open' && clock.now() < intent.quote_expires_at
    return { kind: 'quote', intent, isOnOffer }
  }

  async function create(
    intentId: string,
    project: ProjectRow,
    request: ProtectedRequest,
  ): Promise<Opened> {
    const route = await store.route(project.project_id, request.routeId)
    const isPriced = route?.method === request.method && matchesPattern(route.pattern, request.path)
    if (!route || !isPriced) return { kind: 'invalid binding' }
    if (project.credits <= 0) return { kind: 'no credits' }
    const invoice = await invoiceFor(project, route.price_sats)
    if (!invoice) return { kind: 'checkout unavailable' }

    const now = clock.now()
    const quoteEndsAt = Math.floor((now + quoteSeconds * 1000) / 1000) * 1000
    const { bodySha256, method, path } = request
    const intent = {
      intent_id: intentId,
      secret_id: fingerprints(secrets)[0],
      project_id: project.project_id,
      route_id: route.route_id,
      method,
      path,
      body_sha256: bodySha256,
      request_digest: requestDigest({
        project: project.project_id,
        route: route.route_id,
        method,
        path,
        bodySha256,
      }),
      amount_sats: route.price_sats,
      recipient: project.address,
      network,
      bolt11: invoice.bolt11,
      payment_hash: invoice.paymentHash,
      description_hash: invoice.descriptionHash,
      verify_url: invoice.verify,
      created_at: now,
      quote_expires_at: Math.min(quoteEndsAt, invoice.expiresAt),
      honoured_until: invoice.expiresAt + HONOUR_MS,
    }
    const done = await attempt(db.write(insertIntent(intent, { now, openMost: OPEN_INTENTS_MOST })))
    if ('refused' in done) return refusal(done.refused, intent.intent_id, project, request)
    const facts = {
      intentId,
      paymentHash: invoice.paymentHash,
      projectId: project.project_id,
      routeId: route.route_id,
    }
    log.info({ event: 'gate.quoted', ...facts, amountSats: route.price_sats })
    if (invoice.descriptionHash === 'mismatch') {
      log.warn({ event: 'gate.description_mismatch', ...facts })
    }
    const [row] = done.rows[INSERTED_INTENT] ?? []
    return { kind: 'quote', intent: row as IntentRow, isOnOffer: true }
  }

  async function invoiceFor(project: ProjectRow, priceSats: number) {
    try {
      return await provider.invoice(project.address, priceSats * 1000)
    } catch (error) {
      log.warn({
        event: 'gate.provider_failed',
        projectId: project.project_id,
        reason: reasonOf(error),
      })
      return null
    }
  }

  /** Why an intent could not be inserted, read only after it was not. */
  async function refusal(
    statement: number,
    intentId: string,
    project: ProjectRow,
    request: ProtectedRequest,
  ): Promise<Opened> {
    const projectId = project.project_id
    if (statement === NOTED_HASH) {
      log.error({ event: 'gate.invoice_reused', projectId })
      return { kind: 'checkout unavailable' }
    }
    // Another instance was faster; its invoice is the intent's, and ours was never shown.
    const intent = await store.intent(intentId)
    if (intent) return repeat(intent, request)
    const current = await store.project(projectId)
    if (!current || current.suspended_at !== null) return { kind: 'invalid project capability' }
    if (current.credits <= 0) return { kind: 'no credits' }
    const now = clock.now()
    const waitSeconds = Math.ceil(((await store.nextOver(projectId, now)) - now) / 1000)
    return { kind: 'too many open', waitSeconds }
  }

  async function authorize(intent: IntentRow, by: VerificationKind): Promise<Proven> {
    const now = clock.now()
    const receipt = await newReceipt(intent, by, now)
    const done = await attempt(db.write(authorizeIntent(receipt)))
    if ('rows' in done) {
      const row = done.rows[2]?.[0] as ReceiptRow
      log.info({
        event: 'gate.authorized',
        ...factsOf(intent),
        receiptId: row.receipt_id,
        amountSats: intent.amount_sats,
        by,
        creditsRemaining: row.credits_remaining,
      })
      if (now > intent.honoured_until) {
        const lateSeconds = Math.round((now - intent.honoured_until) / 1000)
        log.warn({ event: 'gate.authorized_late', ...factsOf(intent), lateSeconds })
      }
      return { kind: 'authorized', intent, receipt: row }
    }
    const current = await settledOr(intent, null)
    if (current.kind === 'authorized') return current
    // It was open when the unit was refused, so that the credit could not be taken.
    await noteAsUnhonoured(intent, 'project missing')
    return { kind: 'unhonoured' }
  }

  async function noteAsUnhonoured(intent: IntentRow, reason: UnhonouredReason): Promise<void> {
    const noted = await attempt(db.write([noteUnhonoured(intent, { reason, now: clock.now() })]))
    if ('refused' in noted) return
    const amountSats = intent.amount_sats
    log.error({ event: 'gate.unhonoured', ...factsOf(intent), amountSats, reason })
  }

  async function newReceipt(intent: IntentRow, by: VerificationKind, now: number, giveBacks = 0) {
    const issuedAt = Math.floor(now / 1000)
    const expiresAt = issuedAt + ADMISSION_SECONDS
    const receiptId = randomUUID()
    return {
      receipt_id: receiptId,
      intent_id: intent.intent_id,
      project_id: intent.project_id,
      verified_by: by,
      authorized_at: now,
      expires_at: expiresAt * 1000,
      receipt: await receipts.sign({
        iss: publicUrl(),
        aud: intent.project_id,
        jti: receiptId,
        iat: issuedAt,
        exp: expiresAt,
        intent: intent.intent_id,
        route: intent.route_id,
        htm: intent.method,
        htp: intent.path,
        req: intent.request_digest,
        sat: intent.amount_sats,
        ph: intent.payment_hash,
        net: intent.network,
        by,
        ...(giveBacks > 0 ? { gb: giveBacks } : {}),
      }),
    }
  }

  /** The newest receipt, if there is one by now; made here where the one before was given back. */
  async function settledOr(intent: IntentRow, retryAfterSeconds: number | null): Promise<Proven> {
    const receipt = await store.receiptOf(intent.intent_id)
    if (!receipt) return { kind: 'pending', intent, retryAfterSeconds }
    if (receipt.given_back_at === null) return { kind: 'authorized', intent, receipt }
    const now = clock.now()
    const next = await newReceipt(intent, receipt.verified_by, now, receipt.give_backs + 1)
    const renewed = await attempt(db.write([renewReceipt(receipt, next)]))
    const row = 'rows' in renewed ? renewed.rows[0]?.[0] : await store.receiptOf(intent.intent_id)
    return { kind: 'authorized', intent, receipt: row as ReceiptRow }
  }

  async function isSettled(intent: IntentRow, verify: string): Promise<boolean> {
    const { bolt11, payment_hash: paymentHash } = intent
    try {
      return await provider.isSettled({ bolt11, paymentHash, verify })
    } catch (error) {
      log.warn({ event: 'gate.verify_failed', ...factsOf(intent), reason: reasonOf(error) })
      return false
    }
  }

  return {
    async projectOf(capability) {
      const project = await store.projectOfKey(tokenHash(capability))
      return project && isTokenOf('gate_key', capability, project.key_hash) ? project : null
    },

    async open(project, key, request) {
      if (!isBindable(request.path)) return { kind: 'invalid binding' }
      const ids = intentIds(project.project_id, key)
      const [intentId = ''] = ids
      const existing = await known(ids)
      if (existing) return repeat(existing, request)
      const underWay = opening.get(intentId)
      if (underWay) {
        const outcome = await underWay
        return outcome.kind === 'quote' ? repeat(outcome.intent, request) : outcome
      }
      const made = create(intentId, project, request).finally(() => opening.delete(intentId))
      opening.set(intentId, made)
      return made
    },

    async intent(projectId, intentId) {
      const intent = isId('gate_intent', intentId) ? await store.intent(intentId) : null
      return intent?.project_id === projectId ? intent : null
    },

    isBound: (intent, { method, path }) =>
      isBoundTo(intent.request_digest, {
        project: intent.project_id,
        route: intent.route_id,
        method,
        path,
        bodySha256: intent.body_sha256,
      }),

    async poll(intent) {
      const now = clock.now()
      const { verify_url: verify, verify_count: count } = intent
      if (intent.state === 'authorized') return settledOr(intent, null)
      if (verify === null || now > intent.honoured_until) return settledOr(intent, null)
      const waitMs = BACK_OFF_MS[Math.min(count, BACK_OFF_MS.length - 1)] ?? 0
      const nextAt = now + waitMs
      const claimed = await attempt(db.write([claimVerification(intent, { now, nextAt })]))
      if ('rows' in claimed && (await isSettled(intent, verify))) {
        return authorize(intent, 'provider')
      }
      const untilMs = 'rows' in claimed ? waitMs : intent.next_verify_at - now
      return settledOr(intent, Math.max(1, Math.ceil(untilMs / 1000)))
    },

    async prove(intent, preimage) {
      if (!provesPayment(preimage, intent.payment_hash)) {
        return (await store.receiptOf(intent.intent_id))
          ? { kind: 'wrong preimage' }
          : { kind: 'pending', intent, retryAfterSeconds: PROVE_AGAIN_SECONDS }
      }
      const current = await settledOr(intent, null)
      return current.kind === 'authorized' ? current : authorize(intent, 'preimage')
    },

    async giveBack(intent, receiptId) {
      const intentId = intent.intent_id
      const now = clock.now()
      const most = GIVE_BACKS_MOST
      const done = await attempt(db.write(giveBackReceipt({ intentId, receiptId, now, most })))
      if ('rows' in done) {
        const giveBacks = Number(done.rows[0]?.[0]?.give_backs) + 1
        log.info({ event: 'gate.given_back', ...factsOf(intent), receiptId, giveBacks })
        return 'recorded'
      }
      if (await store.isGivenBack(intentId, receiptId)) return 'recorded'
      const newest = await store.receiptOf(intentId)
      if (newest?.receipt_id === receiptId) await noteAsUnhonoured(intent, 'given back twice')
      return 'refused'
    },

    jwks: receipts.jwks,

    foreign: () => store.foreign(fingerprints(secrets), clock.now()),

    async purge(now) {
      const [gone] = await db.write([purgeUnpaid(before(now, KEEP_MS), PURGE_INTENTS)])
      return gone?.length ?? 0
    },
  }
}

/** An intent in the log. */
const factsOf = (intent: IntentRow) => ({
  intentId: intent.intent_id,
  paymentHash: intent.payment_hash,
  projectId: intent.project_id,
})

/** Why a provider could not be used. Anything but a provider's failing is our own bug. */
function reasonOf(error: unknown): string {
  if (error instanceof LnurlError) return error.message
  throw error
}
