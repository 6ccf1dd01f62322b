/** The rules of CATCH: who may do what with an inbox. */

import { hash, randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { attempt, type Db } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { isId, newId } from '../lib/ids.ts'
import { mediaType } from '../lib/media-type.ts'
import type { Grant, PlanId, Provisioning } from '../payment/provisioning.ts'
import { sealDelivery } from '../payment/store.ts'
import { isTokenOf, tokenFromSeed, tokenHash } from '../payment/tokens.ts'
import { eventJson, storedHeaders } from './event.ts'
import { eventId, parseEventId } from './event-id.ts'
import { createIngest } from './ingest.ts'
import type {
  CatchCapability,
  CatchIpLocation,
  CatchPlan,
  CatchState,
  CatchStatus,
  EventQuery,
} from './schema.ts'
import { createSearch } from './search.ts'
import {
  createCatchStore,
  deleteEvent,
  destroyInbox,
  dropInbox,
  type EventFilter,
  type EventRow,
  type InboxRow,
  insertInbox,
  purgeEvents,
} from './store.ts'

/** A page ends early rather than hold more body bytes than this; its cursor goes on. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
const DEFAULT_LIMIT = 20
/** What a stream fetches at a time: one reader never holds more than this. */
const STREAM_EVENTS = 64
const STREAM_BYTES = 1024 * 1024
/** What the ingest remembers of inboxes in use. */
const REMEMBERED_INBOXES = 20_000
/** The owner still sees `expired` for this long; with the purge's interval within 15 minutes. */
const SHOW_EXPIRED_MS = 10 * 60 * 1000
const PURGE_INBOXES = 100
const PURGE_EVENTS = 100

/** What never changes about an inbox while it lives, so that it need not be read again. */
export type InboxFacts = {
  publicId: string
  planId: PlanId
  ingestTokenHash: Uint8Array
  maxBytesPerRequest: number
}

export type Ingest = {
  token: string | null
  method: string
  path: string
  query: string
  /** Names and values in turn, as sent. */
  rawHeaders: string[]
  contentType: string | null
  body: Buffer
  sourceIp: string
  isProxied: boolean
}

export type CatchService = {
  provisioning: Provisioning
  /** The inbox an ingest goes to, or null where there is none. Its limits decide later. */
  facts(publicId: string): Promise<InboxFacts | null>
  /** Stores one request, durably. False when the inbox does not take it. */
  ingest(inbox: InboxFacts, request: Ingest): Promise<boolean>
  /** The inbox that this token owns, or null: unknown, destroyed or somebody else's. */
  owned(publicId: string, ownerToken: string): Promise<InboxRow | null>
  /** The owner token was used with success: what the sale dispensed is not repeated any more. */
  used(inbox: InboxRow): Promise<void>
  status(inbox: InboxRow): CatchStatus
  /** An `EventPage` in JSON. */
  page(inbox: InboxRow, query: EventQuery): Promise<string>
  /** One event, or null where there is none of this id. */
  event(inbox: InboxRow, id: string): Promise<EventRow | null>
  deleteEvent(inbox: InboxRow, id: string): Promise<boolean>
  /**
   * The events after a sequence, oldest first, and how the inbox stands: `ended` once nothing can
   * come any more. Read in this order, so that an end never hides an event.
   */
  after(
    publicId: string,
    sequence: number,
  ): Promise<{ events: EventRow[]; ended: CatchState | null }>
  /**
   * Calls `listener` when there may be news of an inbox; returns how to stop, or null where too
   * many listen already.
   */
  listen(publicId: string, listener: () => void): (() => void) | null
  /** Ends the inbox at once; its bytes are gone within a minute. False when it was gone before. */
  destroy(inbox: InboxRow): Promise<boolean>
  /** Deletes what is over. @returns how many inboxes are gone for good. */
  purge(): Promise<number>
}

export function createCatch(deps: {
  db: Db
  hints: Hints
  clock: Clock
  isForwardingHeader: (name: string) => boolean
  locate: (ip: string) => CatchIpLocation | null
}): CatchService {
  const { db, hints, clock, isForwardingHeader, locate } = deps
  const store = createCatchStore(db)
  const search = createSearch(store)
  const keep = createIngest(db)
  const remembered = new LRUCache<string, InboxFacts>({ max: REMEMBERED_INBOXES })
  /** Inboxes whose delivery is known to be sealed, so that it need not be sealed again. */
  const sealed = new LRUCache<string, true>({ max: REMEMBERED_INBOXES })
  let purging: Promise<number> | null = null

  async function facts(publicId: string): Promise<InboxFacts | null> {
    const known = remembered.get(publicId)
    if (known) return known
    if (!isId('catch', publicId)) return null
    const inbox = await store.inbox(publicId)
    if (!inbox || inbox.expires_at <= clock.now()) return null
    const found = {
      publicId,
      planId: inbox.plan_id,
      ingestTokenHash: inbox.ingest_token_hash,
      maxBytesPerRequest: inbox.max_bytes_per_request,
    }
    remembered.set(publicId, found)
    return found
  }

  async function find(inbox: InboxRow, id: string): Promise<EventRow | null> {
    const parsed = parseEventId(id)
    if (!parsed || inbox.expires_at <= clock.now()) return null
    const [row] = await store.events(inbox.public_id, [parsed.sequence])
    return row && eventId(row) === id.toLowerCase() ? row : null
  }

  async function purgeOver(): Promise<number> {
    const now = clock.now()
    let dropped = 0
    for (;;) {
      const inboxes = await store.over(now, now - SHOW_EXPIRED_MS, PURGE_INBOXES)
      for (const inbox of inboxes) {
        for (;;) {
          const [deleted] = await db.write([purgeEvents(inbox.public_id, PURGE_EVENTS)])
          if ((deleted?.length ?? 0) < PURGE_EVENTS) break
        }
        if (inbox.destroyed_at === null && inbox.expires_at > now - SHOW_EXPIRED_MS) continue
        await db.write([dropInbox(inbox.public_id)])
        dropped++
      }
      if (inboxes.length < PURGE_INBOXES) return dropped
    }
  }

  return {
    provisioning: {
      newPublicId: () => newId('catch'),
      provision(grant) {
        const plan = grant.plan as CatchPlan
        const { ownerToken, ingestToken } = capability(grant)
        return [
          insertInbox({
            publicId: grant.publicId,
            planId: grant.planId,
            ownerTokenHash: tokenHash(ownerToken),
            ingestTokenHash: tokenHash(ingestToken),
            requestLimit: plan.requestLimit,
            storageLimitBytes: plan.storageLimitBytes,
            maxBytesPerRequest: plan.maxBytesPerRequest,
            createdAt: grant.settledAt,
            expiresAt: grant.expiresAt,
          }),
        ]
      },
      capability,
    },

    facts,

    async ingest(inbox, request) {
      const now = clock.now()
      const isAuthenticated =
        request.token !== null && isTokenOf('catch_ingest', request.token, inbox.ingestTokenHash)
      const place = locate(request.sourceIp)
      const isFirstUse = isAuthenticated && !sealed.has(inbox.publicId)
      const isStored = await keep(inbox.publicId, isFirstUse, {
        salt: randomInt(2 ** 26),
        receivedAt: now,
        access: isAuthenticated ? 'authenticated' : 'public',
        method: request.method,
        path: request.path,
        query: request.query,
        headers: JSON.stringify(storedHeaders(request, isForwardingHeader)),
        contentType: request.contentType,
        mediaType: mediaType(request.contentType),
        body: request.body,
        bodySha256: hash('sha256', request.body, 'hex'),
        sourceIp: request.sourceIp,
        ipLocation: place === null ? null : JSON.stringify(place),
      })
      if (!isStored) {
        // Over, or full: either way what was remembered may not hold any more.
        remembered.delete(inbox.publicId)
        return false
      }
      if (isFirstUse) sealed.set(inbox.publicId, true)
      hints.tell(inbox.publicId)
      return true
    },

    async owned(publicId, ownerToken) {
      if (!isId('catch', publicId)) return null
      const inbox = await store.inbox(publicId)
      return inbox && isTokenOf('catch_owner', ownerToken, inbox.owner_token_hash) ? inbox : null
    },

    async used(inbox) {
      if (sealed.has(inbox.public_id)) return
      await db.write([sealDelivery(inbox.public_id, clock.now())])
      sealed.set(inbox.public_id, true)
    },

    status: (inbox) => ({
      publicId: inbox.public_id,
      planId: inbox.plan_id,
      status: stateOf(inbox, clock.now()),
      requestLimit: inbox.request_limit,
      storageLimitBytes: inbox.storage_limit_bytes,
      maxBytesPerRequest: inbox.max_bytes_per_request,
      acceptedRequestCount: inbox.accepted_request_count,
      storedBytes: inbox.stored_bytes,
      createdAt: rfc3339(inbox.created_at),
      expiresAt: rfc3339(inbox.expires_at),
    }),

    async page(inbox, query) {
      const latestSequence = inbox.last_sequence
      if (inbox.expires_at <= clock.now()) return pageJson([], null, latestSequence)
      const limit = query.limit ?? DEFAULT_LIMIT
      const filter: EventFilter = { below: query.cursor ?? Number.MAX_SAFE_INTEGER }
      if (query.access !== undefined) filter.access = query.access
      if (query.method !== undefined) filter.method = storable(query.method.toUpperCase())
      if (query.contentType !== undefined)
        filter.mediaType = storable(mediaType(query.contentType) ?? '')
      const most = { limit, bytes: MAX_PAGE_BYTES }
      const { rows, nextCursor } = query.q
        ? await search(inbox.public_id, filter, most, query.q)
        : await store.newest(inbox.public_id, filter, most)
      return pageJson(rows, nextCursor, latestSequence)
    },

    event: find,

    async deleteEvent(inbox, id) {
      const row = await find(inbox, id)
      if (!row) return false
      const done = await attempt(db.write(deleteEvent(inbox.public_id, row.sequence, row.salt)))
      return 'rows' in done
    },

    async after(publicId, sequence) {
      const inbox = await store.inbox(publicId)
      if (!inbox) return { events: [], ended: 'manually_destroyed' }
      const state = stateOf(inbox, clock.now())
      if (state === 'expired') return { events: [], ended: state }
      const rows = await store.oldest(publicId, sequence, {
        limit: STREAM_EVENTS,
        bytes: STREAM_BYTES,
      })
      // Read after the state: an exhausted inbox has no event that these rows could have missed.
      const isOver = rows.length === 0 && state === 'exhausted'
      return { events: rows, ended: isOver ? state : null }
    },

    listen: hints.listen,

    async destroy(inbox) {
      remembered.delete(inbox.public_id)
      const done = await attempt(db.write([destroyInbox(inbox.public_id, clock.now())]))
      hints.tell(inbox.public_id)
      return 'rows' in done
    },

    purge() {
      purging ??= purgeOver().finally(() => {
        purging = null
      })
      return purging
    },
  }
}

/** manually_destroyed > expired > suspended > exhausted > active. */
export function stateOf(inbox: InboxRow, now: number): CatchState {
  if (inbox.destroyed_at !== null) return 'manually_destroyed'
  if (inbox.expires_at <= now) return 'expired'
  if (inbox.suspended_at !== null) return 'suspended'
  if (inbox.accepted_request_count >= inbox.request_limit) return 'exhausted'
  return 'active'
}

function capability(grant: Grant): CatchCapability {
  return {
    product: 'catch',
    publicId: grant.publicId,
    ownerToken: tokenFromSeed('catch_owner', grant.seed),
    ingestToken: tokenFromSeed('catch_ingest', grant.seed),
    expiresAt: rfc3339(grant.expiresAt),
  }
}

function pageJson(rows: EventRow[], nextCursor: number | null, latestSequence: number): string {
  const events = rows.map(eventJson).join(',')
  return `{"events":[${events}],"nextCursor":${nextCursor},"latestSequence":${latestSequence}}`
}

/** No event has a U+0000 in these, and PostgreSQL takes none in a text: such a filter finds nothing. */
const storable = (text: string): string => (text.includes('\0') ? '' : text)
