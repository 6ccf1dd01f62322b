/**
 * Inboxes in the store. Their events are in `event-store.ts`. On SQLite `catch_inbox` is a view, and of what
 * changes it only the returned rows are counted.
 */
import { type Db, limitedTo, type Row, type Statement } from '../db/db.ts'
import type { DeletionTime } from '../lib/clock.ts'
import type { PlanId } from '../lib/product-names.ts'

export type InboxRow = {
  public_id: string
  plan_id: PlanId
  owner_token_hash: Uint8Array
  ingest_token_hash: Uint8Array
  request_limit: number
  storage_limit_bytes: number
  max_bytes_per_request: number
  accepted_request_count: number
  stored_bytes: number
  last_sequence: number
  created_at: number
  expires_at: number
  suspended_at: number | null
  destroyed_at: number | null
} & Row

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
}): Statement => ({
  text: `insert into catch_inbox
    (public_id, plan_id, owner_token_hash, ingest_token_hash, request_limit, storage_limit_bytes,
     max_bytes_per_request, accepted_request_count, stored_bytes, last_sequence, created_at, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, $8, $9)
    returning public_id`,
  values: [
    inbox.publicId,
    inbox.planId,
    inbox.ownerTokenHash,
    inbox.ingestTokenHash,
    inbox.requestLimit,
    inbox.storageLimitBytes,
    inbox.maxBytesPerRequest,
    inbox.createdAt,
    inbox.expiresAt,
  ],
  expect: 1,
})

/** Extends an active inbox, unless it was extended since it was read. */
export const extendInbox = (extended: {
  publicId: string
  /** As it was read. */
  endsAt: number
  expiresAt: number
  moreRequests: number
  moreBytes: number
  now: number
}): Statement => ({
  text: `update catch_inbox set expires_at = $3, request_limit = request_limit + $4,
      storage_limit_bytes = storage_limit_bytes + $5
    where public_id = $1 and expires_at = $2 and expires_at > $6 and destroyed_at is null
      and suspended_at is null and accepted_request_count < request_limit
    returning public_id`,
  values: [
    extended.publicId,
    extended.endsAt,
    extended.expiresAt,
    extended.moreRequests,
    extended.moreBytes,
    extended.now,
  ],
  expect: 1,
})

export const destroyInbox = (publicId: string, now: number): Statement => ({
  text: `update catch_inbox set destroyed_at = $2 where public_id = $1 and destroyed_at is null
    returning public_id`,
  values: [publicId, now],
  expect: 1,
})

export const suspendInbox = (publicId: string, now: number): Statement => ({
  text: `update catch_inbox set suspended_at = $2
    where public_id = $1 and suspended_at is null and destroyed_at is null and expires_at > $2
    returning public_id`,
  values: [publicId, now],
  expect: 1,
})

export const resumeInbox = (publicId: string): Statement => ({
  text: `update catch_inbox set suspended_at = null
    where public_id = $1 and suspended_at is not null and destroyed_at is null
    returning public_id`,
  values: [publicId],
  expect: 1,
})

/** Holds unless the inbox was extended since it was read. Locks its row for the rest of the unit. */
export const unextendedInbox = ({
  public_id,
  expires_at,
}: Pick<InboxRow, 'public_id' | 'expires_at'>): Statement => ({
  text: `update catch_inbox set expires_at = expires_at where public_id = $1 and expires_at = $2
    returning public_id`,
  values: [public_id, expires_at],
  expect: 1,
})

/** Deletes an inbox without events, unless it was extended since it was read. */
export const dropInbox = ({
  public_id,
  expires_at,
}: Pick<InboxRow, 'public_id' | 'expires_at'>): Statement => ({
  text: `delete from catch_inbox where public_id = $1
    and (expires_at = $2 or destroyed_at is not null)
    and not exists (select 1 from catch_event where public_id = $1)`,
  values: [public_id, expires_at],
})

export type InboxStore = ReturnType<typeof createInboxStore>

export function createInboxStore(db: Pick<Db, 'read'>) {
  return {
    async inbox(publicId: string): Promise<InboxRow | null> {
      const [inbox] = await db.read<InboxRow>(
        'select * from catch_inbox where public_id = $1 and destroyed_at is null',
        publicId,
      )
      return inbox ?? null
    },

    /**
     * Inboxes to purge: destroyed, expired before `shownSince`, or expired and not yet empty. An empty
     * inbox that its owner can still see is left out: many of them would use up the limit.
     */
    purgeable(now: DeletionTime, shownSince: DeletionTime, limit: number): Promise<InboxRow[]> {
      return db.read<InboxRow>(
        // Two queries, each through an index: SQLite would read all of the view for one with `or`.
        `select * from catch_inbox where destroyed_at is not null
         union all
         select * from catch_inbox where destroyed_at is null and expires_at <= $1
           and (expires_at <= $2 or exists (
             select 1 from catch_event where catch_event.public_id = catch_inbox.public_id))
         ${limitedTo(3)}`,
        now,
        shownSince,
        limit,
      )
    },
  }
}
