/** GATE for a project's server: intents, polls, proofs and receipts. */
import type { GateAuthorization, GatePending, GateQuote } from '../gate/schema.ts'
import { gateRequestDigest } from '../protocol/gate-binding.ts'
import {
  type GateKey,
  type GateReceipt,
  type ReceiptVerdict,
  readGateKeys,
  verifyAdmission,
  verifyReceipt,
} from '../protocol/gate-receipt.ts'
import { MayflyError } from './errors.ts'
import { type ApiResponse, createHttp, errorOf, type Http, platformFetch } from './http.ts'

/**
 * What a project's server holds: the id is public, the capability is not.
 *
 * ```ts
 * const project: GateProject = { projectId: 'gate_project_…', capability: 'gate_key_…' }
 * ```
 */
export type GateProject = { projectId: string; capability: string }

/**
 * The exact request to pay for.
 *
 * ```ts
 * const request: ProtectedRequest = { route: 'ping', method: 'GET', path: '/ping?n=1' }
 * ```
 */
export type ProtectedRequest = {
  /** The route's id, as the operator registered it. */
  route: string
  method: string
  /** Path and query, as received. */
  path: string
  body?: Uint8Array<ArrayBuffer>
}

/**
 * Where an intent stands: paid and authorized, or not yet.
 *
 * ```ts
 * const receiptOf = (outcome: GateOutcome) => (outcome.settled ? outcome.receipt : null)
 * ```
 */
export type GateOutcome = GateAuthorization | GatePending

/**
 * ```ts
 * const gate = mayfly.gate({ projectId, capability })
 * const quote = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
 * // … somebody pays quote.bolt11 …
 * const outcome = await gate.prove(quote.intentId, preimage)
 * if (outcome.settled) await gate.verifyReceipt(outcome.receipt)
 * ```
 */
export type GateClient = {
  /** Creates the payment intent of a request; with the same key and request, the same one. */
  intent(request: ProtectedRequest, idempotencyKey?: string): Promise<GateQuote>
  /** Proves the payment by the payer's preimage. */
  prove(intentId: string, preimage: string): Promise<GateOutcome>
  /** Asks where the intent stands; the provider is asked where it can tell. */
  poll(intentId: string): Promise<GateOutcome>
  /**
   * Gives a receipt back, where this server failed the request that it let in: the next proof or
   * poll gets a fresh one. Twice for an intent at most.
   * @throws MayflyError `give-back refused`
   */
  giveBack(intentId: string, receiptId: string): Promise<void>
  /**
   * What a receipt says, if it was signed by the service (RFC 7515, RFC 8037) and is for this
   * project. With a request, it must also let that request in, now.
   * @throws MayflyError `invalid receipt`
   */
  verifyReceipt(receipt: string, request?: ProtectedRequest): Promise<GateReceipt>
}

export function createGateClient(
  http: Http,
  { projectId, capability }: GateProject,
  { issuer, now = Date.now }: { issuer: string; now?: () => number },
): GateClient {
  async function outcome(asked: Promise<ApiResponse>): Promise<GateOutcome> {
    const answer = await asked
    if (answer.status === 200 || answer.status === 402) return outcomeOf(answer)
    throw errorOf(answer)
  }

  return {
    async intent(request, idempotencyKey = crypto.randomUUID()) {
      const answer = await requestIntent(http, { projectId, capability }, request, {
        'idempotency-key': idempotencyKey,
      })
      if (answer.status !== 402) throw errorOf(answer)
      return quoteOf(answer)
    },

    prove: (intentId, preimage) =>
      outcome(
        http.request({
          method: 'POST',
          path: `${intentPath(intentId)}/prove`,
          token: capability,
          headers: { 'x-gate-project': projectId, 'content-type': 'application/json' },
          body: JSON.stringify({ preimage }),
        }),
      ),

    async giveBack(intentId, receiptId) {
      const answer = await requestGiveBack(http, { capability, intentId, receiptId })
      if (answer.status !== 204) throw errorOf(answer)
    },

    poll: (intentId) => outcome(http.request({ path: intentPath(intentId), token: capability })),

    async verifyReceipt(receipt, request) {
      const keys = await fetchGateKeys(http)
      const verdict = request
        ? await verifyFor(receipt, keys, { projectId, issuer, request, now: now() })
        : await verifyReceipt(receipt, keys)
      if (verdict.outcome === 'ok' && verdict.receipt.aud === projectId) return verdict.receipt
      throw new MayflyError('invalid receipt', 0)
    },
  }
}

/**
 * Whose keys a receipt is checked with: those at hand, or those that a service shows now.
 *
 * ```ts
 * const by: ReceiptKeys = { baseUrl: 'https://mayfly.example' }
 * ```
 */
export type ReceiptKeys =
  | { keys: readonly GateKey[] }
  | { baseUrl: string; fetch?: typeof globalThis.fetch }

/**
 * What a receipt says, if one of these keys signed it: as a record, not as an admission. With a
 * project it must be that project's. Needs no capability.
 *
 * ```ts
 * const { sat, htm, htp } = await verifyGateReceipt(text, { baseUrl: 'https://mayfly.example' })
 * ```
 * @throws MayflyError `invalid receipt`
 */
export async function verifyGateReceipt(
  receipt: string,
  by: ReceiptKeys & { projectId?: string },
): Promise<GateReceipt> {
  const keys =
    'keys' in by ? by.keys : await fetchGateKeys(createHttp(by.baseUrl, by.fetch ?? platformFetch))
  const verdict = await verifyReceipt(receipt.trim(), keys)
  if (verdict.outcome !== 'ok') throw new MayflyError('invalid receipt', 0)
  if (by.projectId !== undefined && verdict.receipt.aud !== by.projectId) {
    throw new MayflyError('invalid receipt', 0)
  }
  return verdict.receipt
}

/** Requests the intent of a protected request, as a quote or, with the header for it, as a challenge. */
export function requestIntent(
  http: Http,
  { projectId, capability }: GateProject,
  { route, method, path, body }: ProtectedRequest,
  headers: Record<string, string>,
): Promise<ApiResponse> {
  return http.request({
    method: 'POST',
    path: '/api/gate/intents',
    token: capability,
    headers: {
      ...headers,
      'x-gate-project': projectId,
      'x-gate-route': route,
      'x-gate-method': method,
      'x-gate-path': path,
      // The bytes are hashed whatever they are called.
      ...(body?.length ? { 'content-type': 'application/octet-stream' } : {}),
    },
    ...(body?.length ? { body } : {}),
  })
}

/** 204 where it is recorded, or was before. */
export function requestGiveBack(
  http: Http,
  { capability, intentId, receiptId }: { capability: string; intentId: string; receiptId: string },
): Promise<ApiResponse> {
  return http.request({
    method: 'POST',
    path: `${intentPath(intentId)}/give-back`,
    token: capability,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ receiptId }),
  })
}

/** Whether a receipt lets a request in. */
export async function verifyFor(
  receipt: string,
  keys: readonly GateKey[],
  {
    projectId,
    issuer,
    request,
    now,
  }: { projectId: string; issuer: string | null; request: ProtectedRequest; now: number },
): Promise<ReceiptVerdict> {
  const { route, method, path, body = new Uint8Array() } = request
  const requestDigest = await gateRequestDigest({ project: projectId, route, method, path, body })
  const admission = { issuer, audience: projectId, route, method, path, requestDigest, now }
  return verifyAdmission(receipt, keys, admission)
}

/** The keys that the service shows now. @throws MayflyError where it shows none. */
export async function fetchGateKeys(http: Http): Promise<GateKey[]> {
  const jwks = await http.get<{ keys: unknown }>({ path: '/.well-known/gate-jwks.json' }, 'keys')
  const keys = readGateKeys(jwks)
  if (keys === null) throw new MayflyError('unexpected answer', 200)
  return keys
}

export function intentPath(intentId: string): string {
  return `/api/gate/intents/${encodeURIComponent(intentId)}`
}

export function outcomeOf({ status, body }: ApiResponse): GateOutcome {
  if (typeof body === 'object' && body !== null && 'settled' in body && 'intentId' in body) {
    if (body.settled === (status === 200)) return body as GateOutcome
  }
  throw new MayflyError('unexpected answer', status)
}

function quoteOf({ status, body }: ApiResponse): GateQuote {
  const isQuote =
    typeof body === 'object' && body !== null && 'bolt11' in body && 'intentId' in body
  if (!isQuote) throw new MayflyError('unexpected answer', status)
  return body as GateQuote
}
