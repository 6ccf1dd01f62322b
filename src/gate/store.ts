/** Projects, their priced routes, intents and receipts in the store. */
import {
  type Db,
  insertRow,
  limitedTo,
  places,
  type Row,
  type Statement,
  type Unit,
  type Value,
} from '../db/db.ts'
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
  verify_url: string | null
  state: 'open' | 'authorized'
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
  /** How many of all had their request failed by the project's server. The operator honoured the others. */
  failed_runs: number
  /** Set if it was given back and not yet renewed. */
  given_back_at: number | null
}

export type NewReceipt = Omit<
  ReceiptRow,
  'credits_remaining' | 'give_backs' | 'failed_runs' | 'given_back_at'
>

/** The receipts of an intent are counted from 0. A wrong project or intent has other ids. */
export const receiptIdOf = (intentId: string, giveBacks: number): string =>
  `${intentId}.${giveBacks}`

/**
 * Failed runs of an intent whose receipts are renewed. A server that always fails must not work without end for one
 * payment, nor may a payer make it. After a further one the payment is not honoured until the operator says so.
 */
export const MAX_FAILED_RUNS = 2

/** A proven payment whose request was failed too often, for the operator. */
export type UnhonouredRow = Pick<
  IntentRow,
  'intent_id' | 'project_id' | 'payment_hash' | 'amount_sats'
> & {
  noticed_at: number
}

/** A billion: more than any project needs, and small enough for exact sums. */
export const MAX_CREDITS = 1_000_000_000

export const insertProject = (project: Omit<ProjectRow, 'suspended_at'>): Statement =>
  insertRow('gate_project', project)

/** Adds a route. Refused if its id is taken or the project does not exist. */
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
 * Stores the payment hash for good, then the intent. `project` is refused if the project has no
 * credit or is suspended, `paymentHash` if an invoice with this hash was ever used before,
 * `intent` if it exists, and `room` if too many of the project's intents await payment.
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
    intent: insertRow(
      'gate_intent',
      { ...intent, state: 'open', verify_count: 0, next_verify_at: 0 },
      'on conflict (intent_id) do nothing returning *',
    ),
    room: {
      text: `select 1 as fits where (select count(*) from gate_intent
        where project_id = $1 and state = 'open' and honoured_until > $2) <= $3`,
      values: [intent.project_id, now, maxOpen],
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

/**
 * Deletes at most `max` intents that were never paid. Their payment hashes stay stored. The condition is said twice,
 * because on PostgreSQL only the outer one is asked again of a row that was just changed.
 */
export const purgeUnpaid = (before: number, max: number): Statement => ({
  text: `delete from gate_intent where state = 'open' and honoured_until < $1 and intent_id in (
      select intent_id from gate_intent where state = 'open' and honoured_until < $1 ${limitedTo(2)})
    returning intent_id`,
  values: [before, max],
})

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

/** Gives the newest receipt of an intent back, because its request failed. Refused if it was given back before. */
export const giveBackReceipt = (intentId: string, receiptId: string, now: number): Statement => ({
  text: `update gate_receipt set given_back_at = $3, failed_runs = failed_runs + 1
    where intent_id = $1 and receipt_id = $2 and given_back_at is null returning failed_runs`,
  values: [intentId, receiptId, now],
  expect: 1,
})

/** Replaces a receipt that was given back, and whose request failed no more than twice. Of concurrent renewals, one succeeds. */
export const renewReceipt = (
  old: ReceiptRow,
  { receipt_id, expires_at, receipt }: Pick<ReceiptRow, 'receipt_id' | 'expires_at' | 'receipt'>,
): Statement => ({
  text: `update gate_receipt set receipt_id = $3, expires_at = $4, receipt = $5,
      give_backs = give_backs + 1, given_back_at = null
    where intent_id = $1 and receipt_id = $2 and given_back_at is not null
      and failed_runs <= ${MAX_FAILED_RUNS} returning *`,
  values: [old.intent_id, old.receipt_id, receipt_id, expires_at, receipt],
  expect: 1,
})

/** The next proof of this intent gets a fresh receipt, whatever became of those before. Refused if it has none. */
export const honourIntent = (intentId: string, now: number): Statement => ({
  text: `update gate_receipt set given_back_at = coalesce(given_back_at, $2),
      failed_runs = case when failed_runs > ${MAX_FAILED_RUNS} then ${MAX_FAILED_RUNS} else failed_runs end
    where intent_id = $1`,
  values: [intentId, now],
  expect: 1,
})

export function createGateStore(db: Pick<Db, 'read'>) {
  /** The first row of a query, or null where it has none. */
  async function first<T extends Row>(text: string, ...values: Value[]): Promise<T | null> {
    const [row] = await db.read<T>(text, ...values)
    return row ?? null
  }

  return {
    project: (projectId: string) =>
      first<ProjectRow>('select * from gate_project where project_id = $1', projectId),

    projectOfKey: (keyHash: Uint8Array) =>
      first<ProjectRow>('select * from gate_project where key_hash = $1', keyHash),

    projects: () => db.read<ProjectRow>('select * from gate_project order by created_at'),

    route: (projectId: string, routeId: string) =>
      first<RouteRow>(
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
      first<IntentRow>('select * from gate_intent where intent_id = $1', intentId),

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

    receiptOf: (intentId: string) =>
      first<ReceiptRow>('select * from gate_receipt where intent_id = $1', intentId),

    /** Proven payments that are not honoured, oldest first. */
    unhonoured: (max: number) =>
      db.read<UnhonouredRow>(
        `select i.intent_id, i.project_id, i.payment_hash, i.amount_sats,
            r.given_back_at as noticed_at
          from gate_receipt r join gate_intent i on i.intent_id = r.intent_id
          where r.failed_runs > ${MAX_FAILED_RUNS}
          order by noticed_at, i.intent_id ${limitedTo(1)}`,
        max,
      ),
  }
}
