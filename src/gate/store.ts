/** Projects, routes, intents and receipts in the store. */
import type { Db, Row, Statement, Unit } from '../db/db.ts'
import type { DeletionTime } from '../lib/clock.ts'
import type { RouteSpec } from './route-spec.ts'
import type { VerificationKind } from './schema.ts'

export type ProjectRow = {
  project_id: string
  key_hash: Uint8Array
  address: string
  verification: VerificationKind
  credits: number
  created_at: number
  suspended_at: number | null
}

export type RouteRow = {
  project_id: string
  route_id: string
  method: string
  pattern: string
  price_sats: number
}

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

export type ReceiptRow = {
  receipt_id: string
  intent_id: string
  project_id: string
  verified_by: VerificationKind
  authorized_at: number
  expires_at: number
  credits_remaining: number
  receipt: string
  /** Receipts of this intent before this one, each given back. */
  give_backs: number
  /** Set where it was given back and nobody has asked for the next one yet. */
  given_back_at: number | null
}

/** Why a payment that is proven was not honoured. */
export type UnhonouredReason = 'given back twice' | 'project missing'

export type UnhonouredRow = {
  intent_id: string
  project_id: string
  payment_hash: string
  amount_sats: number
  reason: UnhonouredReason
  noticed_at: number
}

export type NewIntent = Omit<IntentRow, 'state' | 'verify_count' | 'next_verify_at'>
export type NewReceipt = Omit<ReceiptRow, 'credits_remaining' | 'give_backs' | 'given_back_at'>

/** A thousand thousand thousand: nobody is given more, and sums stay exact. */
export const MAX_CREDITS = 1_000_000_000

export const insertProject = (project: {
  projectId: string
  keyHash: Uint8Array
  address: string
  verification: VerificationKind
  credits: number
  createdAt: number
}): Statement => ({
  text: `insert into gate_project (project_id, key_hash, address, verification, credits, created_at)
    values ($1, $2, $3, $4, $5, $6)`,
  values: [
    project.projectId,
    project.keyHash,
    project.address,
    project.verification,
    project.credits,
    project.createdAt,
  ],
  expect: 1,
})

/** Refused where the project has a route of this id, or there is no such project. */
export const insertRoute = (projectId: string, route: RouteSpec): Statement => ({
  text: `insert into gate_route (project_id, route_id, method, pattern, price_sats)
    select project_id, $2, $3, $4, $5 from gate_project where project_id = $1
    on conflict (project_id, route_id) do nothing`,
  values: [projectId, route.routeId, route.method, route.pattern, route.priceSats],
  expect: 1,
})

export const deleteRoute = (projectId: string, routeId: string): Statement => ({
  text: 'delete from gate_route where project_id = $1 and route_id = $2',
  values: [projectId, routeId],
  expect: 1,
})

export const suspendProject = (projectId: string, now: number): Statement => ({
  text: `update gate_project set suspended_at = $2
    where project_id = $1 and suspended_at is null`,
  values: [projectId, now],
  expect: 1,
})

export const resumeProject = (projectId: string): Statement => ({
  text: `update gate_project set suspended_at = null
    where project_id = $1 and suspended_at is not null`,
  values: [projectId],
  expect: 1,
})

export const replaceKey = (projectId: string, keyHash: Uint8Array): Statement => ({
  text: 'update gate_project set key_hash = $2 where project_id = $1',
  values: [projectId, keyHash],
  expect: 1,
})

export const grantCredits = (projectId: string, credits: number): Statement => ({
  text: `update gate_project set credits = credits + $2
    where project_id = $1 and credits + $2 <= $3 returning credits`,
  values: [projectId, credits, MAX_CREDITS],
  expect: 1,
})

/**
 * Notes the payment hash for good, then the intent. `project` is refused where the project has no
 * credit or is suspended, `paymentHash` where an invoice with this hash was ever taken before,
 * `intent` where the intent is there already or too many of its project's wait for payment.
 *
 * `project` also makes the openings of a project take turns until they are committed. Counting alone
 * is not exact where transactions see none of each other's intents; a later statement than the one
 * that waited sees them all.
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

/**
 * Authorizes an intent, takes the credit and keeps the receipt, all or nothing. `intent` carries the
 * condition: of any number of proofs, one passes it. However late: the project has the
 * money.
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
      // The payer has paid: this may go below zero, by no more than what was open and came late.
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
 * Gives the newest receipt of an intent back. Refused where it is not the newest, was given back
 * before, or where as many as `max` were.
 */
export function giveBackReceipt({
  intentId,
  receiptId,
  now,
  max,
}: {
  intentId: string
  receiptId: string
  now: number
  max: number
}) {
  return {
    receipt: {
      text: `update gate_receipt set given_back_at = $3
        where intent_id = $1 and receipt_id = $2 and given_back_at is null and give_backs < $4
        returning give_backs`,
      values: [intentId, receiptId, now, max],
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

/** Puts the next receipt in the place of one that was given back; of several, one passes. */
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

/** Refused where it is noted already and was not honoured since. */
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

/** No row where the payment was never noted. */
export const noteHonoured = (intentId: string, now: number): Statement => ({
  text: 'update gate_unhonoured set honoured_at = $2 where intent_id = $1 and honoured_at is null',
  values: [intentId, now],
})

/** Lets polls ask the provider once more, until then. */
export const askProviderAgain = (intentId: string, until: number): Statement => ({
  text: `update gate_intent set honoured_until = $2, next_verify_at = 0
    where intent_id = $1 and state = 'open' and honoured_until < $2`,
  values: [intentId, until],
  expect: 1,
})

/** No question is put off for longer, unless by a clock that was ahead and was put right since. */
const PUT_OFF_MOST_MS = 60_000

/** Takes the right to ask the provider now; of several polls at once, one gets it. */
export const claimVerification = (
  { intent_id, next_verify_at }: IntentRow,
  { now, nextAt }: { now: number; nextAt: number },
): Statement => ({
  text: `update gate_intent set verify_count = verify_count + 1, next_verify_at = $4
    where intent_id = $1 and state = 'open' and next_verify_at = $2
      and (next_verify_at <= $3 or next_verify_at > $3 + $5) and honoured_until >= $3`,
  values: [intent_id, next_verify_at, now, nextAt, PUT_OFF_MOST_MS],
  expect: 1,
})

/** A bounded part of what was never paid. Its payment hashes stay known. */
export const purgeUnpaid = (before: DeletionTime, most: number): Statement => ({
  text: `delete from gate_intent where state = 'open' and intent_id in (
      select intent_id from gate_intent where state = 'open' and honoured_until < $1 limit $2)
    returning intent_id`,
  values: [before, most],
})

export function createGateStore(db: Db) {
  async function one<T extends Row>(text: string, ...values: Statement['values']) {
    const [row] = await db.read<T>(text, ...values)
    return row ?? null
  }

  return {
    project: (projectId: string) =>
      one<ProjectRow>('select * from gate_project where project_id = $1', projectId),

    projectOfKey: (keyHash: Uint8Array) =>
      one<ProjectRow>('select * from gate_project where key_hash = $1', keyHash),

    projects: () => db.read<ProjectRow>('select * from gate_project order by created_at'),

    route: (projectId: string, routeId: string) =>
      one<RouteRow>(
        'select * from gate_route where project_id = $1 and route_id = $2',
        projectId,
        routeId,
      ),

    routes: (projectId: string) =>
      db.read<RouteRow>(
        'select * from gate_route where project_id = $1 order by route_id',
        projectId,
      ),

    intent: (intentId: string) =>
      one<IntentRow>('select * from gate_intent where intent_id = $1', intentId),

    receiptOf: (intentId: string) =>
      one<ReceiptRow>('select * from gate_receipt where intent_id = $1', intentId),

    async isGivenBack(intentId: string, receiptId: string): Promise<boolean> {
      const text = 'select 1 as found from gate_give_back where receipt_id = $1 and intent_id = $2'
      return (await one(text, receiptId, intentId)) !== null
    },

    /** Payments that somebody is owed something for, the oldest first. */
    unhonoured: (most: number) =>
      db.read<UnhonouredRow>(
        `select * from gate_unhonoured where honoured_at is null
         order by noticed_at, intent_id limit $1`,
        most,
      ),

    /** For the operator: what is waiting for payment, and what was authorized so far. */
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

    /** When the first of the waiting intents stops to wait. */
    async nextOver(projectId: string, now: number): Promise<number> {
      const [row] = await db.read<{ at: number | null }>(
        `select min(honoured_until) as at from gate_intent
         where project_id = $1 and state = 'open' and honoured_until > $2`,
        projectId,
        now,
      )
      return row?.at ?? now
    },

    /** Intents that may still be paid, made under none of these secrets. */
    async foreign(secretIds: string[], now: number): Promise<number> {
      const places = secretIds.map((_, i) => `$${i + 2}`).join(', ')
      const [row] = await db.read<{ count: number }>(
        `select count(*) as count from gate_intent
         where state = 'open' and honoured_until > $1 and secret_id not in (${places})`,
        now,
        ...secretIds,
      )
      return row?.count ?? 0
    },
  }
}
