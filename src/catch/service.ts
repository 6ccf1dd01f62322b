/** The rules of CATCH: who may do what with an inbox, and what an event is. */

import { isUtf8 } from 'node:buffer'
import { hash, randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { attempt, type Db } from '../db/db.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { containsToken, isId, newId } from '../lib/ids.ts'
import type { Grant, PlanId, Provisioning } from '../payment/provisioning.ts'
import { sealDelivery } from '../payment/store.ts'
import { isTokenOf, tokenFromSeed, tokenHash } from '../payment/tokens.ts'
import { eventId, parseEventId } from './event-id.ts'
import type {
  CatchCapability,
  CatchEvent,
  CatchIpLocation,
  CatchPlan,
  CatchState,
  CatchStatus,
  EventPage,
  EventQuery,
} from './schema.ts'
import { matches } from './search.ts'
import {
  createCatchStore,
  deleteEvent,
  destroyInbox,
  dropInbox,
  type EventFilter,
  type EventRow,
  type InboxRow,
  insertEvent,
  insertInbox,
  type Newest,
  purgeEvents,
} from './store.ts'

/** A page ends early rather than hold more body bytes than this; its cursor goes on. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
/** A search reads this many events, and about this many body bytes, before it lets others run. */
const SEARCH_EVENTS = 256
const SEARCH_BYTES = 512 * 1024
const DEFAULT_LIMIT = 20
/** What a stream fetches at a time: one reader never holds more than this. */
const STREAM_EVENTS = 64
const STREAM_BYTES = 1024 * 1024
/** Streams of one inbox at once, on one server. */
const MAX_LISTENERS = 64
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
  page(inbox: InboxRow, query: EventQuery): Promise<EventPage>
  /** One event, or null where there is none of this id. */
  event(inbox: InboxRow, id: string): Promise<{ event: CatchEvent; body: Buffer } | null>
  deleteEvent(inbox: InboxRow, id: string): Promise<boolean>
  /**
   * The events after a sequence, oldest first, and how the inbox stands: `ended` once nothing can
   * come any more. Read in this order, so that an end never hides an event.
   */
  after(
    publicId: string,
    sequence: number,
  ): Promise<{ events: CatchEvent[]; ended: CatchState | null }>
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
  clock: Clock
  isForwardingHeader: (name: string) => boolean
  locate: (ip: string) => CatchIpLocation | null
}): CatchService {
  const { db, clock, isForwardingHeader, locate } = deps
  const store = createCatchStore(db)
  const remembered = new LRUCache<string, InboxFacts>({ max: REMEMBERED_INBOXES })
  /** Inboxes whose delivery is known to be sealed, so that it need not be sealed again. */
  const sealed = new LRUCache<string, true>({ max: REMEMBERED_INBOXES })
  let searches: Promise<unknown> = Promise.resolve()
  let purging: Promise<number> | null = null
  /** Who waits for news of an inbox, by its id. */
  const listeners = new Map<string, Set<() => void>>()

  function wake(publicId: string): void {
    for (const listener of listeners.get(publicId) ?? []) listener()
  }

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

  /** The newest events that contain a text, read in slices that leave room for others. */
  async function search(
    publicId: string,
    filter: EventFilter,
    limit: number,
    text: string,
  ): Promise<Newest> {
    const sequences: number[] = []
    let bytes = 0
    let below = filter.below
    for (;;) {
      const candidates = await store.texts(publicId, { ...filter, below }, SEARCH_EVENTS)
      for (const slice of slices(candidates)) {
        const bodies = await store.bodies(
          publicId,
          slice.map((event) => event.sequence),
        )
        const bodyOf = new Map(bodies.map(({ sequence, body }) => [sequence, body]))
        for (const event of slice) {
          const body = bodyOf.get(event.sequence)
          if (!body || !matches(text, { ...event, body })) continue
          const isFull =
            sequences.length === limit ||
            (sequences.length > 0 && bytes + event.body_bytes > MAX_PAGE_BYTES)
          if (isFull) return found(publicId, sequences, sequences.at(-1) ?? null)
          sequences.push(event.sequence)
          bytes += event.body_bytes
        }
        // Lets requests in between two slices, however fast the store answers.
        await new Promise((resolve) => setImmediate(resolve))
      }
      const last = candidates.at(-1)
      if (!last || candidates.length < SEARCH_EVENTS) return found(publicId, sequences, null)
      below = last.sequence
    }
  }

  async function found(
    publicId: string,
    sequences: number[],
    nextCursor: number | null,
  ): Promise<Newest> {
    const rows = sequences.length > 0 ? await store.events(publicId, sequences) : []
    return { rows, nextCursor }
  }

  async function find(inbox: InboxRow, id: string): Promise<EventRow | null> {
    const parsed = parseEventId(id)
    if (!parsed || inbox.expires_at <= clock.now()) return null
    const [row] = await store.events(inbox.public_id, [parsed.sequence])
    return row && eventId(row) === id.toLowerCase() ? row : null
  }

  /** One search at a time: the next waits, and other requests do not. */
  function searchInTurn(...ask: Parameters<typeof search>): Promise<Newest> {
    const turn = searches.then(() => search(...ask))
    searches = turn.catch(() => undefined)
    return turn
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
      const done = await attempt(
        db.write([
          ...insertEvent({
            publicId: inbox.publicId,
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
          }),
          ...(isFirstUse ? [sealDelivery(inbox.publicId, now)] : []),
        ]),
      )
      if ('refused' in done) {
        // Over, or full: either way what was remembered may not hold any more.
        remembered.delete(inbox.publicId)
        return false
      }
      if (isFirstUse) sealed.set(inbox.publicId, true)
      wake(inbox.publicId)
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
      if (inbox.expires_at <= clock.now()) return { events: [], nextCursor: null, latestSequence }
      const limit = query.limit ?? DEFAULT_LIMIT
      const filter: EventFilter = { below: query.cursor ?? Number.MAX_SAFE_INTEGER }
      if (query.access !== undefined) filter.access = query.access
      if (query.method !== undefined) filter.method = query.method.toUpperCase()
      if (query.contentType !== undefined) filter.mediaType = mediaType(query.contentType) ?? ''
      const { rows, nextCursor } = query.q
        ? await searchInTurn(inbox.public_id, filter, limit, query.q)
        : await store.newest(inbox.public_id, filter, { limit, bytes: MAX_PAGE_BYTES })
      return { events: rows.map(eventOf), nextCursor, latestSequence }
    },

    async event(inbox, id) {
      const row = await find(inbox, id)
      return row && { event: eventOf(row), body: bodyOf(row) }
    },

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
      return { events: rows.map(eventOf), ended: isOver ? state : null }
    },

    listen(publicId, listener) {
      const some = listeners.get(publicId) ?? new Set()
      if (some.size >= MAX_LISTENERS) return null
      listeners.set(publicId, some.add(listener))
      return () => {
        some.delete(listener)
        if (some.size === 0) listeners.delete(publicId)
      }
    },

    async destroy(inbox) {
      remembered.delete(inbox.public_id)
      const done = await attempt(db.write([destroyInbox(inbox.public_id, clock.now())]))
      wake(inbox.public_id)
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

/** The media type of a content type, lower case, without parameters (RFC 9110 §8.3.1). */
export function mediaType(contentType: string | null): string | null {
  return contentType === null ? null : (contentType.split(';')[0] ?? '').trim().toLowerCase()
}

/**
 * The headers as sent and in order, but for what would hand our secrets to whoever reads them
 * later, and for what a proxy of ours added.
 */
function storedHeaders(
  { rawHeaders, isProxied }: Ingest,
  isForwardingHeader: (name: string) => boolean,
): { name: string; value: string }[] {
  const headers: { name: string; value: string }[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    if (isProxied && isForwardingHeader(name.toLowerCase())) continue
    if (isSecret(name, value)) continue
    headers.push({ name, value })
  }
  return headers
}

/** Credentials that the request came with, and ours wherever they stand. */
function isSecret(name: string, value: string): boolean {
  if (containsToken(value) || CREDENTIAL.test(value)) return true
  return AUTHORIZATION.has(name.toLowerCase()) && PAYMENT_SCHEME.test(value)
}

const AUTHORIZATION = new Set(['authorization', 'payment-authorization', 'proxy-authorization'])
const PAYMENT_SCHEME = /^\s*(?:Payment|L402|LSAT)\b/i
/** One long token after the scheme: a header that only speaks of a payment is kept. */
const CREDENTIAL = /^\s*(?:Payment|L402|LSAT)\s+[A-Za-z0-9+/_=-]{12,}(?::[0-9a-fA-F]*)?\s*$/i

function eventOf(row: EventRow): CatchEvent {
  const body = bodyOf(row)
  const isText = isUtf8(body)
  return {
    id: eventId(row),
    sequence: row.sequence,
    receivedAt: rfc3339(row.received_at),
    access: row.access,
    method: row.method,
    path: row.path,
    query: row.query,
    headers: JSON.parse(row.headers) as CatchEvent['headers'],
    contentType: row.content_type,
    body: body.toString(isText ? 'utf8' : 'base64'),
    bodyEncoding: isText ? 'utf8' : 'base64',
    bodyBytes: row.body_bytes,
    bodySha256: row.body_sha256,
    sourceIp: row.source_ip,
    ipLocation:
      row.ip_location === null ? null : (JSON.parse(row.ip_location) as CatchEvent['ipLocation']),
  }
}

function bodyOf({ body }: EventRow): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

/** Cuts candidates into runs of a bounded number of body bytes. */
function slices<T extends { body_bytes: number }>(events: T[]): T[][] {
  const runs: T[][] = []
  let run: T[] = []
  let bytes = 0
  for (const event of events) {
    if (run.length > 0 && bytes + event.body_bytes > SEARCH_BYTES) {
      runs.push(run)
      run = []
      bytes = 0
    }
    run.push(event)
    bytes += event.body_bytes
  }
  if (run.length > 0) runs.push(run)
  return runs
}
