/** Proofs: a preimage, or the provider's word, authorizes an intent once and yields a receipt. */
import { attempt, type Db, StoreAway } from '../db/db.ts'
import { type Problem, problem } from '../http/errors.ts'
import type { HeldClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { provesPayment } from '../protocol/preimage.ts'
import { failureReason, type Provider } from './provider.ts'
import { newReceipt, type Receipts } from './receipts.ts'
import type { VerificationKind } from './schema.ts'
import {
  authorizeIntent,
  claimVerification,
  createGateStore,
  giveBackReceipt,
  type IntentRow,
  intentFacts,
  MAX_FAILED_RUNS,
  type ReceiptRow,
  receiptIdOf,
  renewReceipt,
} from './store.ts'

/** The pause after the first, second, … question to a provider. LUD-21 has no push. */
const BACK_OFF_MS = [2_000, 3_000, 5_000, 8_000, 15_000]
/** The Retry-After of a proof of an unpaid intent. Wallets have the preimage seconds after paying. */
const PROVE_AGAIN_SECONDS = 2

export type ProofOutcome =
  | { kind: 'authorized'; intent: IntentRow; receipt: ReceiptRow }
  | { kind: 'pending'; intent: IntentRow; retryAfterSeconds: number | null }

export function createProofs(deps: {
  db: Db
  provider: Provider
  receipts: Receipts
  clock: HeldClock
  log: Log
  publicUrl: () => string
}) {
  const { db, provider, receipts, clock, log, publicUrl } = deps
  const store = createGateStore(db)

  async function authorize(intent: IntentRow, by: VerificationKind): Promise<ProofOutcome> {
    // As for orders. A 402 would ask who has paid to pay.
    if (clock.hasGoneBack()) throw new StoreAway('the clock went back, so nothing is settled yet')
    const now = clock.now()
    const receipt = await newReceipt(receipts, intent, { issuer: publicUrl(), by, now })
    const done = await attempt(
      db.write({ lockKey: intent.intent_id, statements: authorizeIntent(receipt) }),
    )
    if ('rows' in done) {
      const row = done.rows.receipt[0] as ReceiptRow
      logAuthorized(intent, row)
      return { kind: 'authorized', intent, receipt: row }
    }
    // Another proof was faster.
    return currentOutcome(intent)
  }

  function logAuthorized(intent: IntentRow, receipt: ReceiptRow): void {
    log.info({
      event: 'gate.authorized',
      ...intentFacts(intent),
      receiptId: receipt.receipt_id,
      amountSats: intent.amount_sats,
      by: receipt.verified_by,
      creditsRemaining: receipt.credits_remaining,
    })
  }

  /** Authorized if the intent has a receipt, which is renewed if it was given back and may be. Else pending. */
  async function currentOutcome(
    intent: IntentRow,
    retryAfterSeconds: number | null = null,
  ): Promise<ProofOutcome> {
    const receipt = await store.receiptOf(intent.intent_id)
    if (!receipt) return { kind: 'pending', intent, retryAfterSeconds }
    const newest = receipt.given_back_at === null ? receipt : await renew(intent, receipt)
    return { kind: 'authorized', intent, receipt: newest }
  }

  async function renew(intent: IntentRow, old: ReceiptRow): Promise<ReceiptRow> {
    const next = await newReceipt(receipts, intent, {
      issuer: publicUrl(),
      by: old.verified_by,
      now: clock.now(),
      giveBacks: old.give_backs + 1,
    })
    const renewed = await attempt(
      db.write({ lockKey: intent.intent_id, statements: { receipt: renewReceipt(old, next) } }),
    )
    const row =
      'rows' in renewed ? renewed.rows.receipt[0] : await store.receiptOf(intent.intent_id)
    return row as ReceiptRow
  }

  async function isSettled(intent: IntentRow, verify: string): Promise<boolean> {
    const { recipient: address, bolt11, payment_hash: paymentHash } = intent
    try {
      return await provider.isSettled({ address, bolt11, paymentHash, verify })
    } catch (error) {
      const reason = failureReason(error)
      log.warn({ event: 'gate.verify_failed', ...intentFacts(intent), reason })
      return false
    }
  }

  return {
    /** The state of the intent. Asks the provider if that is due. */
    async poll(intent: IntentRow): Promise<ProofOutcome> {
      const now = clock.now()
      const { verify_url: verify, verify_count: count } = intent
      if (intent.state === 'authorized') return currentOutcome(intent)
      if (verify === null || now > intent.honoured_until) return currentOutcome(intent)
      const waitMs = BACK_OFF_MS[Math.min(count, BACK_OFF_MS.length - 1)] ?? 0
      const claim = claimVerification(intent, { now, nextAt: now + waitMs })
      const claimed = await attempt(
        db.write({ lockKey: intent.intent_id, statements: { intent: claim } }),
      )
      if ('rows' in claimed && (await isSettled(intent, verify))) {
        return authorize(intent, 'provider')
      }
      const untilMs = 'rows' in claimed ? waitMs : intent.next_verify_at - now
      return currentOutcome(intent, Math.max(1, Math.ceil(untilMs / 1000)))
    },

    /** Authorizes by the preimage of the intent's invoice. @throws Problem `wrong preimage` of a paid one. */
    async prove(intent: IntentRow, preimage: string): Promise<ProofOutcome> {
      if (!provesPayment(preimage, intent.payment_hash)) {
        if (await store.receiptOf(intent.intent_id)) throw wrongPreimage()
        return { kind: 'pending', intent, retryAfterSeconds: PROVE_AGAIN_SECONDS }
      }
      const current = await currentOutcome(intent)
      return current.kind === 'authorized' ? current : authorize(intent, 'preimage')
    },

    /**
     * Gives the newest receipt back, because the project's server failed its request. The next proof or poll makes a
     * fresh one, but after the third failed run only once the operator honours the payment. Repeats are recorded
     * once.
     * @throws Problem `give-back refused`, also for a receipt of another intent.
     */
    async giveBack(intent: IntentRow, receiptId: string): Promise<void> {
      const { intent_id: intentId, amount_sats: amountSats } = intent
      const receipt = giveBackReceipt(intentId, receiptId, clock.now())
      const done = await attempt(db.write({ lockKey: intentId, statements: { receipt } }))
      if ('refused' in done) {
        const newest = await store.receiptOf(intentId)
        if (newest && isRecorded(receiptId, newest)) return
        throw problem('give-back refused')
      }
      const failedRuns = Number(done.rows.receipt[0]?.failed_runs)
      if (failedRuns > MAX_FAILED_RUNS) {
        log.error({ event: 'gate.unhonoured', ...intentFacts(intent), amountSats })
        throw problem('give-back refused')
      }
      log.info({ event: 'gate.given_back', ...intentFacts(intent), receiptId, failedRuns })
    },
  }
}

/** Whether a receipt was given back and may be. All receipts before the newest one were. */
function isRecorded(receiptId: string, newest: ReceiptRow): boolean {
  const { intent_id, receipt_id, give_backs, failed_runs } = newest
  if (receipt_id === receiptId) return failed_runs <= MAX_FAILED_RUNS
  return Array.from({ length: give_backs }, (_, i) => receiptIdOf(intent_id, i)).includes(receiptId)
}

const wrongPreimage = (): Problem => problem('wrong preimage', { 'www-authenticate': 'Bearer' })
