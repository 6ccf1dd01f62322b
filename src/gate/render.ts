/** Intents and receipts as JSON bodies. */
import { rfc3339, rfc3339Seconds } from '../lib/clock.ts'
import type { GateAuthorization, GatePending, GateQuote } from './schema.ts'
import type { IntentRow, ReceiptRow } from './store.ts'

export function renderQuote(intent: IntentRow): GateQuote {
  return {
    intentId: intent.intent_id,
    projectId: intent.project_id,
    routeId: intent.route_id,
    method: intent.method,
    path: intent.path,
    requestDigest: intent.request_digest,
    amountSats: intent.amount_sats,
    recipient: intent.recipient,
    bolt11: intent.bolt11,
    paymentHash: intent.payment_hash,
    expiresAt: rfc3339Seconds(intent.quote_expires_at),
    network: intent.network,
    settled: intent.state === 'authorized',
  }
}

export function renderPending(intent: IntentRow, now: number): GatePending {
  const verification = intent.verify_url === null ? 'preimage' : 'provider'
  const waiting = verification === 'provider' ? 'pending' : 'proof_required'
  return {
    settled: false,
    intentId: intent.intent_id,
    status: now > intent.honoured_until ? 'expired' : waiting,
    verification,
    expiresAt: rfc3339Seconds(intent.quote_expires_at),
    error: 'payment not verified',
  }
}

export function renderAuthorization(intent: IntentRow, receipt: ReceiptRow): GateAuthorization {
  return {
    settled: true,
    intentId: intent.intent_id,
    receiptId: receipt.receipt_id,
    projectId: intent.project_id,
    routeId: intent.route_id,
    method: intent.method,
    path: intent.path,
    requestDigest: intent.request_digest,
    amountSats: intent.amount_sats,
    paymentHash: intent.payment_hash,
    verifiedBy: receipt.verified_by,
    authorizedAt: rfc3339(receipt.authorized_at),
    expiresAt: rfc3339(receipt.expires_at),
    creditsRemaining: receipt.credits_remaining,
    receipt: receipt.receipt,
  }
}
