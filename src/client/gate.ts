/** The client of GATE, for a project's server: intents, polls, proofs and receipts. */
import type { GateAuthorization, GatePending, GateQuote } from '../gate/schema.ts'
import { gateRequestDigest } from '../protocol/gate-binding.ts'
import {
  type AdmissionVerdict,
  type GateKey,
  type GateReceipt,
  readGateKeys,
  verifyAdmission,
  verifyReceipt,
} from '../protocol/gate-receipt.ts'
import { MayflyError } from './errors.ts'
import {
  type ApiRequest,
  type ApiResponse,
  type CallOptions,
  createHttp,
  errorOf,
  type Http,
  platformFetch,
} from './http.ts'

/** A project's id and its capability. The id is public, the capability is secret. */
export type GateProject = { projectId: string; capability: string }

/** The exact request that a payment is bound to. */
export type ProtectedRequest = {
  /** The id under which the operator registered the route. */
  route: string
  method: string
  /** Path and query, as received. */
  path: string
  body?: Uint8Array<ArrayBuffer>
}

/** The state of an intent: authorized with a receipt, or pending. */
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
export type GateClient = ReturnType<typeof createGateClient>

export function createGateClient(http: Http, { projectId, capability }: GateProject) {
  async function outcome(asked: ApiRequest): Promise<GateOutcome> {
    const answer = await http.request({ ...asked, token: capability, isRepeatable: true })
    if (answer.status === 200 || answer.status === 402) return outcomeOf(answer)
    throw errorOf(answer)
  }

  return {
    /** Creates the payment intent of a request. The same key and request return the same intent. */
    async intent(
      request: ProtectedRequest,
      idempotencyKey: string = crypto.randomUUID(),
      options?: CallOptions,
    ): Promise<GateQuote> {
      const headers = { 'idempotency-key': idempotencyKey }
      const asked = { ...request, headers, ...options, isRepeatable: true }
      const answer = await requestIntent(http, { projectId, capability }, asked)
      if (answer.status !== 402) throw errorOf(answer)
      return quoteOf(answer)
    },

    /** Proves the payment by the payer's preimage, 64 hex digits. */
    prove: (intentId: string, preimage: string, options?: CallOptions) =>
      outcome({
        method: 'POST',
        path: `${intentPath(intentId)}/prove`,
        ...options,
        headers: { 'x-gate-project': projectId },
        json: { preimage },
      }),

    /** The state of the intent. The service asks the provider if that supports LUD-21. */
    poll: (intentId: string, options?: CallOptions) =>
      outcome({ path: intentPath(intentId), ...options }),

    /**
     * Gives a receipt back after this server failed the request that it admitted. The next proof or
     * poll returns a fresh one. Allowed twice per intent.
     * @throws MayflyError `give-back refused`
     */
    async giveBack(intentId: string, receiptId: string, options?: CallOptions): Promise<void> {
      const answer = await requestGiveBack(http, { capability, intentId, receiptId }, options)
      if (answer.status !== 204) throw errorOf(answer)
    },

    /**
     * Verifies that the service signed a receipt (RFC 7515, RFC 8037) for this project, and returns its
     * claims. With a request, the receipt must also admit that request now.
     * @throws MayflyError `invalid receipt`
     */
    async verifyReceipt(
      receipt: string,
      request?: ProtectedRequest,
      options?: CallOptions,
    ): Promise<GateReceipt> {
      const keys = await fetchGateKeys(http, { ...options, isRepeatable: true })
      if (!request) return verifyGateReceipt(receipt, { keys, projectId })
      const verdict = await verifyFor(receipt, keys, { projectId, request, now: Date.now() })
      if (verdict.outcome === 'ok') return verdict.receipt
      throw new MayflyError('invalid receipt', 0)
    },
  }
}

/** The keys that verify a receipt: given ones, or the current ones of a service. */
export type ReceiptKeys =
  | { keys: readonly GateKey[] }
  | { baseUrl: string; fetch?: typeof globalThis.fetch }

/**
 * Verifies that one of these keys signed a receipt, and returns its claims: as a record, not to admit
 * a request. With a project, the receipt must be for it. Needs no capability.
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
  if (verdict.outcome === 'ok' && (by.projectId ?? verdict.receipt.aud) === verdict.receipt.aud) {
    return verdict.receipt
  }
  throw new MayflyError('invalid receipt', 0)
}

/** Requests the intent of a protected request. The answer is a quote, or a challenge by header. */
export function requestIntent(
  http: Http,
  { projectId, capability }: GateProject,
  {
    route,
    method,
    path,
    body,
    headers,
    ...options
  }: ProtectedRequest &
    Pick<ApiRequest, 'signal' | 'timeoutMs' | 'isRepeatable'> & {
      headers: Record<string, string>
    },
): Promise<ApiResponse> {
  return http.request({
    ...options,
    method: 'POST',
    path: '/api/gate/intents',
    token: capability,
    headers: {
      ...headers,
      'x-gate-project': projectId,
      'x-gate-route': route,
      'x-gate-method': method,
      'x-gate-path': path,
      // The service hashes the bytes whatever their content type.
      ...(body?.length ? { 'content-type': 'application/octet-stream' } : {}),
    },
    body: body?.length ? body : undefined,
  })
}

/** Gives a receipt back. The answer is 204 if that is recorded now or was before. */
export function requestGiveBack(
  http: Http,
  { capability, intentId, receiptId }: { capability: string; intentId: string; receiptId: string },
  options?: CallOptions,
): Promise<ApiResponse> {
  return http.request({
    ...options,
    method: 'POST',
    path: `${intentPath(intentId)}/give-back`,
    token: capability,
    json: { receiptId },
  })
}

/** Verifies a receipt for a request. */
export async function verifyFor(
  receipt: string,
  keys: readonly GateKey[],
  { projectId, request, now }: { projectId: string; request: ProtectedRequest; now: number },
): Promise<AdmissionVerdict> {
  const { route, method, path, body = new Uint8Array() } = request
  const requestDigest = await gateRequestDigest({ project: projectId, route, method, path, body })
  const admission = { audience: projectId, route, method, path, requestDigest, now }
  return verifyAdmission(receipt, keys, admission)
}

/** The service's current keys. @throws MayflyError if the answer has no keys. */
export async function fetchGateKeys(
  http: Http,
  options?: CallOptions & Pick<ApiRequest, 'isRepeatable'>,
): Promise<GateKey[]> {
  const asked = { path: '/.well-known/gate-jwks.json', ...options }
  const jwks = await http.get<{ keys: unknown }>(asked, ['keys'])
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
