/** Inboxes in the store. Their events are in `event-tables.ts` and `event-store.ts`. */
import { type Db, insertRow, limitedTo, type Row, type Statement } from '../db/db.ts'
import type { PlanId } from '../lib/product-names.ts'
import type { CatchState } from './schema.ts'

/** How a chosen answer is stored: as its owner sees it, and its secret, which is never shown, sealed. */
export type StoredResponse = { response: string | null; response_secret: Uint8Array | null }

export type InboxRow = {
  /** What its events name it by. */
  number: number
  public_id: string
  plan_id: PlanId
  owner_token_hash: Uint8Array
  next_owner_token_hash: Uint8Array | null
  ingest_token_hash: Uint8Array
  request_limit: number
  storage_limit_bytes: number
  max_bytes_per_request: number
  accepted_request_count: number
  stored_bytes: number
  created_at: number
  expires_at: number
  suspended_at: number | null
  destroyed_at: number | null
  revision: number
} & StoredResponse &
  Row

/** The sequence of its latest event: they count its requests from 1, and the count never shrinks. */
export const latestOf = (inbox: InboxRow): number => inbox.accepted_request_count

/** The state of an inbox: manually_destroyed > expired > suspended > exhausted > active. */
export function stateOf(inbox: InboxRow, now: number): CatchState {
  if (inbox.destroyed_at !== null) return 'manually_destroyed'
  if (inbox.expires_at <= now) return 'expired'
  if (inbox.suspended_at !== null) return 'suspended'
  if (inbox.accepted_request_count >= inbox.request_limit) return 'exhausted'
  return 'active'
}

export const insertInbox = (inbox: {
  publicId: string
  planId: string
  ownerTokenHash: Uint8Array
  ingestTokenHash: Uint8Array
  requestLimit: number
  storageLimitBytes: number
  maxBytesPerRequest: number
  createdAt: number
  expiresAt: number
}): Statement[] => [
  insertRow('catch_inbox', {
    public_id: inbox.publicId,
    plan_id: inbox.planId,
    owner_token_hash: inbox.ownerTokenHash,
    ingest_token_hash: inbox.ingestTokenHash,
    max_bytes_per_request: inbox.maxBytesPerRequest,
    created_at: inbox.createdAt,
  }),
  {
    text: `insert into catch_inbox_use (number, accepted_request_count, stored_bytes, request_limit,
        storage_limit_bytes, expires_at)
      select number, 0, 0, $2, $3, $4 from catch_inbox where public_id = $1`,
    values: [inbox.publicId, inbox.requestLimit, inbox.storageLimitBytes, inbox.expiresAt],
    expect: 1,
  },
]

/** Extends an active inbox, unless it was extended since it was read. */
export const extendInbox = (extended: {
  number: number
  /** As it was read. */
  endsAt: number
  expiresAt: number
  moreRequests: number
  moreBytes: number
  now: number
}): Statement => ({
  text: `update catch_inbox_use set expires_at = $3, request_limit = request_limit + $4,
      storage_limit_bytes = storage_limit_bytes + $5
    where number = $1 and expires_at = $2 and expires_at > $6 and destroyed_at is null
      and suspended_at is null and accepted_request_count < request_limit`,
  values: [
    extended.number,
    extended.endsAt,
    extended.expiresAt,
    extended.moreRequests,
    extended.moreBytes,
    extended.now,
  ],
  expect: 1,
})

/** Refused if the owner token that the row was read with owns the inbox no more. */
export const replaceIngestToken = (
  { number, owner_token_hash }: Pick<InboxRow, 'number' | 'owner_token_hash'>,
  next: Uint8Array,
): Statement => ({
  text: 'update catch_inbox set ingest_token_hash = $3 where number = $1 and owner_token_hash = $2',
  values: [number, owner_token_hash, next],
  expect: 1,
})

export const destroyInbox = (number: number, now: number): Statement => ({
  text: 'update catch_inbox_use set destroyed_at = $2 where number = $1 and destroyed_at is null',
  values: [number, now],
  expect: 1,
})

/**
 * Says that a token or the answer changes in this unit: no instance stores an event by what it has read before.
 * Locks the row of the inbox for the rest of the unit.
 */
export const reviseInbox = (number: number, now: number): Statement => ({
  text: `update catch_inbox_use set revision = revision + 1
    where number = $1 and destroyed_at is null and expires_at > $2`,
  values: [number, now],
  expect: 1,
})

/** Stores the chosen answer of an inbox, or none. */
export const setResponse = (number: number, stored: StoredResponse): Statement => ({
  text: 'update catch_inbox set response = $2, response_secret = $3 where number = $1',
  values: [number, stored.response, stored.response_secret],
  expect: 1,
})

/** Takes no requests, and its owner still reads what it has. Refused if it is over, or suspended. */
export const suspendInbox = (publicId: string, now: number): Statement => ({
  text: `update catch_inbox_use set suspended_at = $2
    where number = (select number from catch_inbox where public_id = $1)
      and suspended_at is null and destroyed_at is null and expires_at > $2`,
  values: [publicId, now],
  expect: 1,
})

export const resumeInbox = (publicId: string): Statement => ({
  text: `update catch_inbox_use set suspended_at = null
    where number = (select number from catch_inbox where public_id = $1)
      and suspended_at is not null and destroyed_at is null`,
  values: [publicId],
  expect: 1,
})

/** Holds unless the inbox was extended since it was read. Locks its row for the rest of the unit. */
export const unextendedInbox = ({
  number,
  expires_at,
}: Pick<InboxRow, 'number' | 'expires_at'>): Statement => ({
  text: 'update catch_inbox_use set expires_at = expires_at where number = $1 and expires_at = $2',
  values: [number, expires_at],
  expect: 1,
})

/**
 * Deletes an inbox without events, unless it was extended since it was read.
 * @param events the tables of events, as `eventTables` names them.
 */
export const dropInbox = (
  { number, expires_at }: Pick<InboxRow, 'number' | 'expires_at'>,
  events: string,
): Statement[] => [
  {
    text: `delete from catch_inbox_use where number = $1
      and (expires_at = $2 or destroyed_at is not null)
      and not exists (select 1 from ${events} where inbox = $1)`,
    values: [number, expires_at],
  },
  {
    text: `delete from catch_inbox where number = $1
      and not exists (select 1 from catch_inbox_use where number = $1)`,
    values: [number],
  },
]

export type InboxStore = ReturnType<typeof createInboxStore>

export function createInboxStore(db: Pick<Db, 'read'>) {
  return {
    async inbox(publicId: string): Promise<InboxRow | null> {
      const [inbox] = await db.read<InboxRow>(
        `${INBOXES} where public_id = $1 and destroyed_at is null`,
        publicId,
      )
      return inbox ?? null
    },

    /**
     * Inboxes to purge: destroyed, expired before `shownSince`, or expired and not yet empty. An empty
     * inbox that its owner can still see is left out: many of them would use up the limit.
     * @param events the tables of events, as `eventTables` names them.
     */
    purgeable(
      { now, shownSince }: { now: number; shownSince: number },
      events: string,
      limit: number,
    ): Promise<InboxRow[]> {
      return db.read<InboxRow>(
        // Two queries, each through an index: SQLite would read all of the table for one with `or`.
        `${INBOXES} where destroyed_at is not null
         union all
         ${INBOXES} where destroyed_at is null and expires_at <= $1
           and (expires_at <= $2 or exists (select 1 from ${events} where inbox = number))
         ${limitedTo(3)}`,
        now,
        shownSince,
        limit,
      )
    },
  }
}

const INBOXES = 'select * from catch_inbox_use join catch_inbox using (number)'
