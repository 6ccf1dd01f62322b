/** Reads a visitor's proof of payment. */
import { acceptsPayment } from '../protocol/accept.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { MAX_RECEIPT_CHARS } from '../protocol/gate-receipt.ts'
import { decodeChargeRequest, readPaymentCredential } from '../protocol/payment-auth.ts'

export type Proof =
  | { kind: 'none' }
  | { kind: 'receipt'; receipt: string }
  | { kind: 'credential'; line: string; challengeId: string; intentId: string; preimage: string }
  | { kind: 'preimage'; intentId: string; preimage: string }
  | { kind: 'intent'; intentId: string }
  | { kind: 'unreadable' }

type Headers = { header(name: string): string | null }

/** The proof in a visit's headers. Credentials for other purposes are ignored. */
export function readProof({ header }: Headers): Proof {
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

/** Whether to answer with a `Payment` challenge: by the same rule as the service. */
export function prefersPayment({ header }: Headers): boolean {
  const authorization = header('authorization')
  if (authorization !== null && authScheme(authorization) === 'payment') return true
  const asked = header('x-payment-protocol')
  if (asked !== null) return asked.trim().toLowerCase() === 'payment'
  return acceptsPayment([header('accept-payment') ?? ''], 'lightning', 'charge')
}
