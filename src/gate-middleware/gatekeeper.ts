/**
 * Decides over one visit to a paid route: ask for payment, or let it in. Whatever goes wrong keeps
 * the visitor out, and never asks one who has paid to pay again.
 */

import {
  askForIntent,
  fetchGateKeys,
  type GateProject,
  intentPath,
  outcomeOf,
  type ProtectedRequest,
  verifyFor,
} from '../client/gate.ts'
import { type Answer, createHttp, retryAfterSeconds } from '../client/http.ts'
import { acceptsPayment } from '../protocol/accept.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { type GateReceipt, MAX_RECEIPT_CHARS } from '../protocol/gate-receipt.ts'
import {
  decodeChargeRequest,
  encodeReceipt,
  readPaymentCredential,
} from '../protocol/payment-auth.ts'
import { createKeyRing } from './keys.ts'
import { createReplayGuard, type ReplayGuard } from './replay.ts'

export type GateOptions = GateProject & {
  /** Where the GATE service is. */
  url: string
  /** The address it signs receipts as. Default: `url`. */
  issuer?: string
  replay?: ReplayGuard
  fetch?: typeof globalThis.fetch
  /** Unix milliseconds. */
  now?: () => number
}

export type Visit = ProtectedRequest & {
  body: Uint8Array<ArrayBuffer>
  /** A header's value, several lines joined with `, `; null where there is none. */
  header(name: string): string | null
}

export type Decision =
  /** The handler may run. `headers` go with its answer; `failed` gives the receipt back. */
  | {
      kind: 'admitted'
      receipt: GateReceipt
      headers: Record<string, string>
      failed: () => Promise<void>
    }
  /** The answer, as it is. */
  | { kind: 'refused'; status: number; headers: Record<string, string>; body: string }

export type Gatekeeper = { decide(visit: Visit): Promise<Decision> }

type Proof =
  | { kind: 'none' }
  | { kind: 'receipt'; receipt: string }
  | { kind: 'credential'; line: string; challengeId: string; intentId: string; preimage: string }
  | { kind: 'preimage'; intentId: string; preimage: string }
  | { kind: 'intent'; intentId: string }
  | { kind: 'unreadable' }

/** The service asks the provider, and that takes 10 seconds at most. */
const TIMEOUT_MS = 15_000
const RETRY_SECONDS = 5

export function createGatekeeper(options: GateOptions): Gatekeeper {
  const { projectId, capability, url, now = Date.now } = options
  const issuer = (options.issuer ?? url).replace(/\/+$/, '')
  const replay = options.replay ?? createReplayGuard(now)
  const fetch: typeof globalThis.fetch = (input, init) =>
    (options.fetch ?? globalThis.fetch)(input, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const http = createHttp(url, fetch)
  const ring = createKeyRing(() => fetchGateKeys(http), now)

  async function ask(visit: Visit): Promise<Decision> {
    const answer = await askForIntent(http, { projectId, capability }, visit, {
      // Each visit has its own: two visitors never see one invoice.
      'idempotency-key': crypto.randomUUID(),
      ...(prefersPayment(visit) ? { 'x-payment-protocol': 'payment' } : {}),
    })
    if (answer.status === 402) return relay(answer)
    // The path is one that servers read differently, or the route is not registered.
    if (answer.status === 400) return refusal(400, 'invalid binding')
    return unavailable(answer)
  }

  /** What the service says of a proof: the request's own facts go along, so it compares them. */
  function prove(proof: Exclude<Proof, { kind: 'none' | 'receipt' | 'unreadable' }>, visit: Visit) {
    const path = intentPath(proof.intentId)
    const bound = { 'x-gate-method': visit.method, 'x-gate-path': visit.path }
    if (proof.kind === 'intent') return http.ask({ path, token: capability, headers: bound })
    const headers = {
      ...bound,
      'x-gate-project': projectId,
      'content-type': 'application/json',
      ...(proof.kind === 'credential' ? { authorization: proof.line } : {}),
    }
    return http.ask({
      method: 'POST',
      path: `${path}/prove`,
      headers,
      ...(proof.kind === 'credential' ? {} : { token: capability }),
      body: JSON.stringify({ preimage: proof.preimage }),
    })
  }

  async function admit(receipt: string, visit: Visit, proof: Proof): Promise<Decision> {
    const facts = { projectId, issuer, request: visit, now: now() }
    let verdict = await verifyFor(receipt, await ring.keys(), facts)
    if (verdict.outcome === 'unknown key') {
      verdict = await verifyFor(receipt, await ring.keys('renewed'), facts)
    }
    if (verdict.outcome !== 'ok') return refusal(403, 'invalid receipt')
    const { jti, exp, ph, iat } = verdict.receipt
    // No 402 from here on: an agent would pay by itself for what it has paid.
    if (!(await replay.claim(jti, exp * 1000))) return refusal(409, 'receipt used')
    return {
      kind: 'admitted',
      receipt: verdict.receipt,
      headers: {
        'gate-receipt': receipt,
        'cache-control': 'private, no-store',
        ...(proof.kind === 'credential'
          ? { 'payment-receipt': paymentReceipt(proof.challengeId, ph, iat) }
          : {}),
      },
      failed: async () => replay.release(jti),
    }
  }

  async function judge(visit: Visit): Promise<Decision> {
    const proof = readProof(visit)
    if (proof.kind === 'none' || proof.kind === 'unreadable') return ask(visit)
    if (proof.kind === 'receipt') return admit(proof.receipt, visit, proof)
    const answer = await prove(proof, visit)
    switch (answer.status) {
      case 200: {
        const outcome = outcomeOf(answer)
        return outcome.settled ? admit(outcome.receipt, visit, proof) : unavailable(answer)
      }
      case 402:
        return relay(answer)
      // Of another request or another project: this request has a price of its own.
      case 400:
      case 401:
        return ask(visit)
      default:
        return unavailable(answer)
    }
  }

  return {
    async decide(visit) {
      try {
        return await judge(visit)
      } catch {
        return unavailable(null)
      }
    },
  }
}

/** How a visitor proves that he has paid; a proof that is for something else is none. */
function readProof({ header }: Visit): Proof {
  const receipt = header('gate-receipt')
  if (receipt !== null && receipt.length <= MAX_RECEIPT_CHARS) return { kind: 'receipt', receipt }
  const authorization = header('authorization')
  if (authorization !== null && authScheme(authorization) === 'payment') {
    return readCredential(authorization)
  }
  const intentId = header('x-gate-intent')
  const preimage = header('x-gate-preimage')?.toLowerCase()
  if (intentId === null || !/^gate_intent_[0-9A-Za-z]{22}$/.test(intentId)) return { kind: 'none' }
  if (preimage === undefined) return { kind: 'intent', intentId }
  if (!/^[0-9a-f]{64}$/.test(preimage)) return { kind: 'unreadable' }
  return { kind: 'preimage', intentId, preimage }
}

function readCredential(line: string): Proof {
  const reading = readPaymentCredential([line])
  if (reading.outcome !== 'ok') return { kind: 'unreadable' }
  const { challenge, payload } = reading.credential
  const intentId = decodeChargeRequest(challenge.request)?.externalId
  if (intentId === undefined) return { kind: 'unreadable' }
  return {
    kind: 'credential',
    line,
    challengeId: challenge.id,
    intentId,
    preimage: payload.preimage,
  }
}

/** As the service itself chooses: a credential, the header, or what stock clients send unasked. */
function prefersPayment({ header }: Visit): boolean {
  const authorization = header('authorization')
  if (authorization !== null && authScheme(authorization) === 'payment') return true
  const asked = header('x-payment-protocol')
  if (asked !== null) return asked.trim().toLowerCase() === 'payment'
  return acceptsPayment([header('accept-payment') ?? ''], 'lightning', 'charge')
}

function paymentReceipt(challengeId: string, paymentHash: string, issuedAt: number): string {
  return encodeReceipt({
    challengeId,
    method: 'lightning',
    reference: paymentHash,
    status: 'success',
    timestamp: `${new Date(issuedAt * 1000).toISOString().slice(0, 19)}Z`,
  })
}

/** The service's own 402, with what belongs to it. */
function relay({ status, headers, body }: Answer): Decision {
  const kept: Record<string, string> = { 'cache-control': 'no-store' }
  for (const name of ['content-type', 'www-authenticate', 'retry-after']) {
    const value = headers.get(name)
    if (value !== null) kept[name] = value
  }
  return { kind: 'refused', status, headers: kept, body: JSON.stringify(body) }
}

function unavailable(answer: Answer | null): Decision {
  const seconds = (answer && retryAfterSeconds(answer.headers)) ?? RETRY_SECONDS
  const { headers, ...rest } = refusal(503, 'payment unavailable')
  return { ...rest, headers: { ...headers, 'retry-after': String(seconds) } }
}

function refusal(status: number, error: string): Decision & { kind: 'refused' } {
  return {
    kind: 'refused',
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify({ error }),
  }
}
