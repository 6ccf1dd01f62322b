/** Receipts in the store: issued, given back and renewed; and proven payments without a receipt. */
import { type Db, limitedTo, type Statement, type Unit } from '../db/db.ts'
import { firstRow } from './first-row.ts'
import type { IntentRow } from './intent-store.ts'
import type { VerificationKind } from './schema.ts'

export type ReceiptRow = {
  receipt_id: string
  intent_id: string
  project_id: string
  verified_by: VerificationKind
  authorized_at: number
  expires_at: number
  credits_remaining: number
  receipt: string
  /** The number of earlier receipts of this intent, all of which were given back. */
  give_backs: number
  /** How many of them the project's server had failed. The others had expired unused. */
  failed_runs: number
  /** Set if it was given back and not yet renewed. */
  given_back_at: number | null
}

/** Why a proven payment was not honoured. */
export type UnhonouredReason = 'given back twice' | 'project missing'

export type UnhonouredRow = {
  intent_id: string
  project_id: string
  payment_hash: string
  amount_sats: number
  reason: UnhonouredReason
  noticed_at: number
}

export type NewReceipt = Omit<
  ReceiptRow,
  'credits_remaining' | 'give_backs' | 'failed_runs' | 'given_back_at'
>

/**
 * Authorizes an intent, charges the credit and stores the receipt, all or nothing. `intent` carries
 * the condition, which exactly one of concurrent proofs meets. A late proof is accepted too, since
 * the project has the money.
 */
export function authorizeIntent(receipt: NewReceipt) {
  return {
    intent: {
      text: `update gate_intent set state = 'authorized'
        where intent_id = $1 and state = 'open'`,
      values: [receipt.intent_id],
      expect: 1,
    },
    credit: {
      // The payer has paid, so credits may become negative, by at most the number of open intents.
      text: 'update gate_project set credits = credits - 1 where project_id = $1',
      values: [receipt.project_id],
      expect: 1,
    },
    receipt: {
      text: `insert into gate_receipt (receipt_id, intent_id, project_id, verified_by,
          authorized_at, expires_at, credits_remaining, receipt)
        select $1, $2, project_id, $4, $5, $6, credits, $7
        from gate_project where project_id = $3 returning *`,
      values: [
        receipt.receipt_id,
        receipt.intent_id,
        receipt.project_id,
        receipt.verified_by,
        receipt.authorized_at,
        receipt.expires_at,
        receipt.receipt,
      ],
      expect: 1,
    },
  } satisfies Unit['statements']
}

/**
 * Gives the newest receipt of an intent back. Refused if it is not the newest, was given back before, or the intent
 * has `max` failed runs; and one that is said to be unused, if it has not expired.
 */
export function giveBackReceipt({
  intentId,
  receiptId,
  now,
  max,
  isUnused = false,
}: {
  intentId: string
  receiptId: string
  now: number
  max: number
  isUnused?: boolean
}) {
  return {
    receipt: {
      text: `update gate_receipt set given_back_at = $3${isUnused ? '' : ', failed_runs = failed_runs + 1'}
        where intent_id = $1 and receipt_id = $2 and given_back_at is null
          and ${isUnused ? 'expires_at <= $4' : 'failed_runs < $4'}
        returning give_backs`,
      values: [intentId, receiptId, now, isUnused ? now : max],
      expect: 1,
    },
    givenBack: {
      text: `insert into gate_give_back (receipt_id, intent_id, given_back_at)
        values ($1, $2, $3)`,
      values: [receiptId, intentId, now],
      expect: 1,
    },
  } satisfies Unit['statements']
}

/** Replaces a receipt that was given back. Of concurrent renewals, one succeeds. */
export const renewReceipt = (
  old: ReceiptRow,
  { receipt_id, expires_at, receipt }: Pick<ReceiptRow, 'receipt_id' | 'expires_at' | 'receipt'>,
): Statement => ({
  text: `update gate_receipt set receipt_id = $3, expires_at = $4, receipt = $5,
      give_backs = give_backs + 1, given_back_at = null
    where intent_id = $1 and receipt_id = $2 and given_back_at is not null returning *`,
  values: [old.intent_id, old.receipt_id, receipt_id, expires_at, receipt],
  expect: 1,
})

/** Records an unhonoured payment. Refused if it is recorded and still not honoured. */
export const noteUnhonoured = (
  intent: IntentRow,
  { reason, now }: { reason: UnhonouredReason; now: number },
): Statement => ({
  text: `insert into gate_unhonoured
      (intent_id, project_id, payment_hash, amount_sats, reason, noticed_at)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (intent_id) do update
      set reason = excluded.reason, noticed_at = excluded.noticed_at, honoured_at = null
      where gate_unhonoured.honoured_at is not null`,
  values: [
    intent.intent_id,
    intent.project_id,
    intent.payment_hash,
    intent.amount_sats,
    reason,
    now,
  ],
  expect: 1,
})

/** Records that the payment was honoured. Changes no row if it was never recorded as unhonoured. */
export const noteHonoured = (intentId: string, now: number): Statement => ({
  text: 'update gate_unhonoured set honoured_at = $2 where intent_id = $1 and honoured_at is null',
  values: [intentId, now],
})

export function createReceiptStore(db: Db) {
  return {
    receiptOf: (intentId: string) =>
      firstRow<ReceiptRow>(db, 'select * from gate_receipt where intent_id = $1', intentId),

    async isGivenBack(intentId: string, receiptId: string): Promise<boolean> {
      const text = 'select 1 as found from gate_give_back where receipt_id = $1 and intent_id = $2'
      return (await firstRow(db, text, receiptId, intentId)) !== null
    },

    /** Payments that are not yet honoured, oldest first. */
    unhonoured: (max: number) =>
      db.read<UnhonouredRow>(
        `select * from gate_unhonoured where honoured_at is null
         order by noticed_at, intent_id ${limitedTo(1)}`,
        max,
      ),
  }
}
