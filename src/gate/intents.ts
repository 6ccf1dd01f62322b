/** Intents: one invoice for one request. The first call creates the intent, repeats return it. */
import { hash } from 'node:crypto'
import { attempt, type Db } from '../db/db.ts'
import { checkoutUnavailable, type Problem, problem } from '../http/errors.ts'
import { rateLimited } from '../http/limits.ts'
import { base62 } from '../lib/base62.ts'
import { equalBytes, utf8 } from '../lib/bytes.ts'
import type { HeldClock } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Network } from '../lightning/lightning.ts'
import { bindingText } from '../protocol/gate-binding.ts'
import { fingerprints, keyedHash, type Secrets } from '../secrets/secrets.ts'
import { isBindable, matchesPattern } from './patterns.ts'
import { failureReason, type Provider } from './provider.ts'
import {
  createGateStore,
  type IntentRow,
  insertIntent,
  intentFacts,
  type NewIntent,
  type ProjectRow,
  type RouteRow,
} from './store.ts'

/**
 * How long the provider is asked after an invoice expired: an HTLC may arrive in the last second and
 * be claimed some blocks later. A preimage proves the payment for as long as the intent is stored.
 */
const HONOUR_MS = 10 * 60 * 1000
/**
 * The maximum of open intents in one project, and so of its overdraft in credits. The rate limit
 * allows far fewer during the life of an invoice, so that nobody can reach this.
 */
const MAX_OPEN_INTENTS = 10_000
/** The Retry-After of a project with so many. */
const FULL_SECONDS = 60

export type ProtectedRequest = {
  routeId: string
  method: string
  /** Path and query. */
  path: string
  bodySha256: string
}

/** `isPayable` is true until the quote expires or the intent is authorized. */
export type Quoted = { intent: IntentRow; isPayable: boolean }

export function createIntents(deps: {
  db: Db
  provider: Provider
  secrets: Secrets
  network: Network
  clock: HeldClock
  log: Log
  quoteSeconds: number
}) {
  const { db, provider, secrets, network, clock, log, quoteSeconds } = deps
  const store = createGateStore(db)

  async function create(
    intentId: string,
    project: ProjectRow,
    request: ProtectedRequest,
  ): Promise<Quoted> {
    const route = await store.route(project.project_id, request.routeId)
    if (!route || !isFor(route, request)) throw problem('invalid binding')
    if (project.credits <= 0) throw problem('no credits')
    // If the clock went back, invoice and quote would expire too early.
    const invoice = clock.hasGoneBack() ? null : await requestInvoice(project, route)
    if (!invoice) throw checkoutUnavailable()

    const now = clock.now()
    const { routeId, method, path, bodySha256 } = request
    const quoteEndsAt = Math.floor((now + quoteSeconds * 1000) / 1000) * 1000
    const intent: NewIntent = {
      intent_id: intentId,
      secret_id: fingerprints(secrets)[0],
      project_id: project.project_id,
      route_id: routeId,
      method,
      path,
      body_sha256: bodySha256,
      request_digest: digestOf(project.project_id, request),
      amount_sats: route.price_sats,
      recipient: project.address,
      network,
      bolt11: invoice.bolt11,
      payment_hash: invoice.paymentHash,
      verify_url: invoice.verify,
      quote_expires_at: Math.min(quoteEndsAt, invoice.expiresAt),
      honoured_until: invoice.expiresAt + HONOUR_MS,
    }
    const done = await attempt(
      db.write({
        lockKey: intent.project_id,
        statements: insertIntent(intent, { now, maxOpen: MAX_OPEN_INTENTS }),
      }),
    )
    if ('refused' in done) return whyRefused(done.refused, intent, request)
    const amountSats = route.price_sats
    log.info({ event: 'gate.quoted', ...intentFacts(intent), routeId, amountSats })
    const [row] = done.rows.intent
    return { intent: row as IntentRow, isPayable: true }
  }

  async function requestInvoice({ project_id: projectId, address }: ProjectRow, route: RouteRow) {
    try {
      return await provider.invoice(address, route.price_sats * 1000)
    } catch (error) {
      log.warn({ event: 'gate.provider_failed', projectId, reason: failureReason(error) })
      return null
    }
  }

  /** The intent that was there before, or why none could be inserted; read only after the insert was refused. */
  async function whyRefused(
    statement: keyof ReturnType<typeof insertIntent>,
    { intent_id: intentId, project_id: projectId }: NewIntent,
    request: ProtectedRequest,
  ): Promise<Quoted> {
    if (statement === 'paymentHash') {
      log.error({ event: 'gate.invoice_reused', projectId })
      throw checkoutUnavailable()
    }
    // A request with the same key was faster: the intent has its invoice, and ours was never shown.
    const intent = await store.intent(intentId)
    if (intent) return repeat(intent, request)
    const project = await store.project(projectId)
    if (!project || project.suspended_at !== null) throw invalidCapability()
    if (project.credits <= 0) throw problem('no credits')
    throw rateLimited(FULL_SECONDS)
  }

  /** The answer to a request whose key already has an intent. */
  function repeat(intent: IntentRow, request: ProtectedRequest): Quoted {
    if (!isBoundTo(intent, request)) {
      throw problem('idempotency key reused with a different request')
    }
    const isPayable = intent.state === 'open' && clock.now() < intent.quote_expires_at
    return { intent, isPayable }
  }

  async function firstExisting(intentIds: string[]): Promise<IntentRow | null> {
    for (const intentId of intentIds) {
      const intent = await store.intent(intentId)
      if (intent) return intent
    }
    return null
  }

  return {
    /** Creates the intent of this key, or returns the existing one. @throws Problem if it can do neither. */
    async open(project: ProjectRow, key: string, request: ProtectedRequest): Promise<Quoted> {
      if (!isBindable(request.path)) throw problem('invalid binding')
      const intentIds = intentIdsOf(secrets, project.project_id, key)
      const [intentId = ''] = intentIds
      const existing = await firstExisting(intentIds)
      if (existing) return repeat(existing, request)
      return create(intentId, project, request)
    },

    /** The intent, if it belongs to this project. */
    async intent(projectId: string, intentId: string): Promise<IntentRow | null> {
      const intent = isId('gate_intent', intentId) ? await store.intent(intentId) : null
      return intent?.project_id === projectId ? intent : null
    },

    /** Whether this is the request that the intent was made for. */
    isBound: (intent: IntentRow, { method, path }: { method: string; path: string }): boolean =>
      isBoundTo(intent, {
        routeId: intent.route_id,
        method,
        path,
        bodySha256: intent.body_sha256,
      }),
  }
}

/** The ids that a key maps to under each configured secret, the current secret first. */
function intentIdsOf(secrets: Secrets, projectId: string, key: string): string[] {
  return secrets
    .keys('gate intent')
    .map((secret) => `gate_intent_${base62(keyedHash(secret, projectId, key).subarray(0, 16))}`)
}

function isFor(route: RouteRow, { method, path }: ProtectedRequest): boolean {
  return route.method === method && matchesPattern(route.pattern, path)
}

/** What binds a payment to its request. */
function digestOf(project: string, request: ProtectedRequest): string {
  const { routeId: route, method, path, bodySha256 } = request
  return hash('sha256', bindingText({ project, route, method, path, bodySha256 }), 'hex')
}

/** Whether the intent was made for this request. Compares in constant time. */
function isBoundTo(intent: IntentRow, request: ProtectedRequest): boolean {
  return equalBytes(utf8(digestOf(intent.project_id, request)), utf8(intent.request_digest))
}

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
export const invalidCapability = (): Problem =>
  problem('invalid project capability', { 'www-authenticate': 'Bearer' })
