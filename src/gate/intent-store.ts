/** Intents in the store, from their creation until they are deleted unpaid. */
import { type Db, limitedTo, places, type Statement, type Unit } from '../db/db.ts'
import { firstRow } from './first-row.ts'

export type IntentRow = {
  intent_id: string
  secret_id: string
  project_id: string
  route_id: string
  method: string
  path: string
  body_sha256: string
  request_digest: string
  amount_sats: number
  recipient: string
  network: 'mainnet' | 'regtest' | 'signet'
  bolt11: string
  payment_hash: string
  description_hash: 'match' | 'mismatch' | 'none'
  verify_url: string | null
  state: 'open' | 'authorized'
  created_at: number
  quote_expires_at: number
  honoured_until: number
  verify_count: number
  next_verify_at: number
}

/** The fields of an intent in log events. */
export const intentFacts = (
  intent: Pick<IntentRow, 'intent_id' | 'payment_hash' | 'project_id'>,
) => ({
  intentId: intent.intent_id,
  paymentHash: intent.payment_hash,
  projectId: intent.project_id,
})

export type NewIntent = Omit<IntentRow, 'state' | 'verify_count' | 'next_verify_at'>

/**
 * Stores the payment hash for good, then the intent. `project` is refused if the project has no
 * credit or is suspended, `paymentHash` if an invoice with this hash was ever used before, and
 * `intent` if the intent exists or too many of the project's intents await payment.
 *
 * `project` also locks the project's row until the unit is committed. Concurrent transactions do not
 * see each other's intents, so counting them is exact only under this lock, in a later statement.
 */
export function insertIntent(
  intent: NewIntent,
  { now, maxOpen }: { now: number; maxOpen: number },
) {
  return {
    project: {
      text: `update gate_project set credits = credits
        where project_id = $1 and credits > 0 and suspended_at is null`,
      values: [intent.project_id],
      expect: 1,
    },
    paymentHash: {
      text: 'insert into gate_payment_hash (payment_hash) values ($1) on conflict do nothing',
      values: [intent.payment_hash],
      expect: 1,
    },
    intent: {
      text: `insert into gate_intent
        (intent_id, secret_id, project_id, route_id, method, path, body_sha256, request_digest,
         amount_sats, recipient, network, bolt11, payment_hash, description_hash, verify_url, state,
         created_at, quote_expires_at, honoured_until, verify_count, next_verify_at)
        select $1, $2, project_id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'open',
          $16, $17, $18, 0, 0
        from gate_project where project_id = $3
          and (select count(*) from gate_intent where project_id = $3 and state = 'open'
               and honoured_until > $19) < $20
        on conflict (intent_id) do nothing returning *`,
      values: [
        intent.intent_id,
        intent.secret_id,
        intent.project_id,
        intent.route_id,
        intent.method,
        intent.path,
        intent.body_sha256,
        intent.request_digest,
        intent.amount_sats,
        intent.recipient,
        intent.network,
        intent.bolt11,
        intent.payment_hash,
        intent.description_hash,
        intent.verify_url,
        intent.created_at,
        intent.quote_expires_at,
        intent.honoured_until,
        now,
        maxOpen,
      ],
      expect: 1,
    },
  } satisfies Unit['statements']
}

/** Lets polls ask the provider again, until the given time. */
export const askProviderAgain = (intentId: string, until: number): Statement => ({
  text: `update gate_intent set honoured_until = $2, next_verify_at = 0
    where intent_id = $1 and state = 'open' and honoured_until < $2`,
  values: [intentId, until],
  expect: 1,
})

/** Claims the right to ask the provider now. Of several concurrent polls, one gets it. */
export const claimVerification = (
  { intent_id, next_verify_at }: IntentRow,
  { now, nextAt }: { now: number; nextAt: number },
): Statement => ({
  text: `update gate_intent set verify_count = verify_count + 1, next_verify_at = $4
    where intent_id = $1 and state = 'open' and next_verify_at = $2
      and next_verify_at <= $3 and honoured_until >= $3`,
  values: [intent_id, next_verify_at, now, nextAt],
  expect: 1,
})

/** Deletes at most `max` intents that were never paid. Their payment hashes stay stored. */
export const purgeUnpaid = (before: number, max: number): Statement => ({
  text: `delete from gate_intent where state = 'open' and intent_id in (
      select intent_id from gate_intent where state = 'open' and honoured_until < $1 ${limitedTo(2)})
    returning intent_id`,
  values: [before, max],
})

export function createIntentStore(db: Db) {
  return {
    intent: (intentId: string) =>
      firstRow<IntentRow>(db, 'select * from gate_intent where intent_id = $1', intentId),

    /** For the operator: how many intents await payment, and how many were authorized so far. */
    async counts(projectId: string, now: number): Promise<{ open: number; authorized: number }> {
      const [row] = await db.read<{ open: number; authorized: number }>(
        `select (select count(*) from gate_intent
            where project_id = $1 and state = 'open' and honoured_until > $2) as open,
          (select count(*) from gate_receipt where project_id = $1) as authorized`,
        projectId,
        now,
      )
      return { open: row?.open ?? 0, authorized: row?.authorized ?? 0 }
    },

    /** When the first of the open intents can no longer be paid. */
    async nextOver(projectId: string, now: number): Promise<number> {
      const [row] = await db.read<{ at: number | null }>(
        `select min(honoured_until) as at from gate_intent
         where project_id = $1 and state = 'open' and honoured_until > $2`,
        projectId,
        now,
      )
      return row?.at ?? now
    },

    /** The number of intents that may still be paid but whose secret is not in this list. */
    async foreign(secretIds: string[], now: number): Promise<number> {
      const [row] = await db.read<{ count: number }>(
        `select count(*) as count from gate_intent
         where state = 'open' and honoured_until > $1 and secret_id not in (${places(secretIds, 2)})`,
        now,
        ...secretIds,
      )
      return row?.count ?? 0
    },
  }
}
