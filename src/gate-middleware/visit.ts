/** A visit to a paid route: the proof that it brings, and the decision about it. */
import type { ProtectedRequest } from '../client/gate.ts'
import { type ApiResponse, retryAfterSeconds } from '../client/http.ts'
import { acceptsPayment } from '../protocol/accept.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { type GateReceipt, MAX_RECEIPT_CHARS } from '../protocol/gate-receipt.ts'
import {
  decodeChargeRequest,
  paymentChallengesIn,
  readPaymentCredential,
} from '../protocol/payment-auth.ts'

export type Visit = ProtectedRequest & {
  body: Uint8Array<ArrayBuffer>
  /** The network of the visitor, or null if unknown. */
  network: string | null
  /** A header's value, with several lines joined by `, `; null without it. */
  header(name: string): string | null
  /** Whether the client has left. */
  isGone(): boolean
}

/** The permission to run the handler once, and the functions that report its outcome. */
export type Admission = {
  receipt: GateReceipt
  headers: Record<string, string>
  /** The handler has finished, or its client left. */
  spent(): void
  /** The server failed while its client was connected. */
  failed(): Promise<void>
}

/** The complete answer to a refused visit. */
export type Refused = {
  kind: 'refused'
  status: number
  headers: Record<string, string>
  body: string
}

/** The handler may run once, or does not run. */
export type Decision = ({ kind: 'admitted' } & Admission) | Refused

/** The default Retry-After, if the service names none. */
const RETRY_SECONDS = 5

/** The service's 402 answer with its headers. */
export function relay({ status, headers, body }: ApiResponse): Refused {
  const kept: Record<string, string> = { 'cache-control': 'no-store' }
  for (const name of ['content-type', 'www-authenticate', 'retry-after']) {
    const value = headers.get(name)
    if (value !== null) kept[name] = value
  }
  return { kind: 'refused', status, headers: kept, body: JSON.stringify(body) }
}

/** A failure that the visitor cannot fix. It never asks for payment. */
export function unavailable(answer: ApiResponse | null): Refused {
  const seconds = (answer && retryAfterSeconds(answer.headers)) ?? RETRY_SECONDS
  return refusal(503, 'payment unavailable', { 'retry-after': String(seconds) })
}

export function refusal(
  status: number,
  error: string,
  headers: Record<string, string> = {},
): Refused {
  const kept = { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers }
  return { kind: 'refused', status, headers: kept, body: JSON.stringify({ error }) }
}

/** A proof that cannot be read shows no invoice: what it was made for may be paid. */
export function unreadableProof(): Refused {
  const expected = 'one proof: the id of an intent, and its preimage of 64 hex digits'
  return {
    ...refusal(401, 'unreadable proof', { 'www-authenticate': 'Payment realm="gate"' }),
    body: JSON.stringify({ error: 'unreadable proof', expected }),
  }
}

export type Proof =
  | { kind: 'none' }
  | { kind: 'receipt'; receipt: string }
  | { kind: 'credential'; line: string; challengeId: string; intentId: string; preimage: string }
  | { kind: 'preimage'; intentId: string; preimage: string }
  | { kind: 'intent'; intentId: string }
  | { kind: 'unreadable' }

type Headers = Pick<Visit, 'header'>

const INTENT = /^gate_intent_[0-9A-Za-z]{22}$/

/** The proof in a visit's headers. Credentials for other purposes are ignored. */
export function readProof({ header }: Headers): Proof {
  const receipt = header('gate-receipt')
  if (receipt !== null) {
    return receipt.length <= MAX_RECEIPT_CHARS ? { kind: 'receipt', receipt } : UNREADABLE
  }
  // A comma joins several lines, and stands in no credential.
  const lines =
    header('authorization')
      ?.split(',')
      .map((line) => line.trim()) ?? []
  if (lines.some((line) => authScheme(line) === 'payment')) return readCredential(lines)
  const intentId = header('x-gate-intent')
  const preimage = header('x-gate-preimage')?.toLowerCase()
  if (intentId === null) return preimage === undefined ? { kind: 'none' } : UNREADABLE
  if (!INTENT.test(intentId)) return UNREADABLE
  if (preimage === undefined) return { kind: 'intent', intentId }
  return /^[0-9a-f]{64}$/.test(preimage) ? { kind: 'preimage', intentId, preimage } : UNREADABLE
}

const UNREADABLE: Proof = { kind: 'unreadable' }

function readCredential(lines: string[]): Proof {
  const [line = '', ...more] = lines
  const reading = readPaymentCredential(lines)
  if (typeof reading === 'string' || more.length > 0) {
    // Clients send credentials of other services too. Those are asked to pay.
    const intents = paymentChallengesIn(lines).map(intentOf)
    return intents.some((id) => id !== null) ? UNREADABLE : { kind: 'none' }
  }
  const { challenge, payload } = reading
  const intentId = intentOf(challenge)
  if (intentId === null) return { kind: 'none' }
  const { preimage } = payload
  return { kind: 'credential', line, challengeId: challenge.id, intentId, preimage }
}

function intentOf({ request }: { request: string }): string | null {
  const id = decodeChargeRequest(request)?.externalId
  return id !== undefined && INTENT.test(id) ? id : null
}

/** Whether to answer with a `Payment` challenge: by the same rule as the service. */
export function prefersPayment({ header }: Headers): boolean {
  const authorization = header('authorization')
  if (authorization !== null && authScheme(authorization) === 'payment') return true
  const asked = header('x-payment-protocol')
  if (asked !== null) return asked.trim().toLowerCase() === 'payment'
  return acceptsPayment([header('accept-payment') ?? ''], 'lightning', 'charge')
}
