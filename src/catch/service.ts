/** The rules of CATCH: who may do what with an inbox. */

import { hash, randomInt } from 'node:crypto'
import { attempt, type Db } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import { createRemembered } from '../db/remembered.ts'
import { FORWARDING_HEADERS } from '../http/client-address.ts'
import type { Reservation } from '../http/memory.ts'
import { createOwnerTokens } from '../http/owner-tokens.ts'
import type { Scheduler } from '../http/turns.ts'
import { equalBytes } from '../lib/bytes.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { isId, isToken } from '../lib/ids.ts'
import type { PlanId } from '../lib/product-names.ts'
import { createSealing } from '../payment/sealing.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { isTokenOf } from '../secrets/tokens.ts'
import { type EventRow, eventId, parseEventId } from './event.ts'
import { createEventStore, deleteEvent } from './event-store.ts'
import { eventTables } from './event-tables.ts'
import { createIngest } from './ingest.ts'
import { keptBytes, keptHeaders, mediaTypeIn, packHeaders } from './kept.ts'
import { createPurge } from './purge.ts'
import { createReading, heldBy } from './reading.ts'
import { createRefusals } from './refusals.ts'
import { createResponses } from './response.ts'
import type { CatchIpLocation, CatchResponse, CatchStatus, RefusalReason } from './schema.ts'
import {
  createInboxStore,
  destroyInbox,
  type InboxRow,
  replaceIngestToken,
  reviseInbox,
  setResponse,
  stateOf,
} from './store.ts'

/** The most memory for an event without its body: path, query and headers. */
const MAX_HEAD_BYTES = 64 * 1024

/**
 * The facts of an inbox, so that they can be cached. Its end only changes to a later one; whatever else changes has a
 * new revision, and an event is stored under the current one alone.
 */
export type InboxFacts = {
  publicId: string
  number: number
  planId: PlanId
  ingestTokenHash: Uint8Array
  maxBytesPerRequest: number
  expiresAt: number
  revision: number
  response: CatchResponse | null
}

/** A request to an inbox, as received. */
export type IngestRequest = {
  token: string | null
  /** Of a sender that has shown its token before. */
  tokenHash?: Uint8Array
  method: string
  path: string
  query: string
  /** Names and values alternate, as sent. */
  rawHeaders: string[]
  body: Buffer
  sourceIp: string
  isProxied: boolean
}

export type CatchService = ReturnType<typeof createCatch>

export function createCatch(deps: {
  db: Db
  hints: Hints
  clock: Clock
  locate: (ip: string) => CatchIpLocation | null
  scheduler: Scheduler
  secrets: Secrets
  /** Called with the storage that each accepted request used, in bytes. */
  onIngested: (bytes: number) => void
}) {
  const { db, hints, clock, locate, scheduler, onIngested } = deps
  const responses = createResponses(deps.secrets)
  const store = createInboxStore(db)
  const events = eventTables(db)
  const eventStore = createEventStore(db, events)
  const reading = createReading({ store: eventStore, inboxes: store, scheduler, clock })
  const sealing = createSealing({ db, clock })
  const tokens = createOwnerTokens({
    db,
    clock,
    sealing,
    kind: 'catch_owner',
    table: 'catch_inbox',
    find: async (publicId) => (isId('catch', publicId) ? store.inbox(publicId) : null),
  })
  const ingest = createIngest(db, sealing, events.insert)
  const remembered = createRemembered(activeInbox, sizeOfFacts)
  const refusals = createRefusals({ db, clock })

  /** The inbox, if it accepts requests, as stored now. Only a request asks, which is counted if it does not. */
  async function activeInbox(publicId: string): Promise<InboxFacts | null> {
    if (!isId('catch', publicId)) return null
    const inbox = await store.inbox(publicId)
    if (!inbox || stateOf(inbox, clock.now()) !== 'active') {
      countRefused(inbox)
      return null
    }
    return {
      publicId,
      number: inbox.number,
      planId: inbox.plan_id,
      ingestTokenHash: inbox.ingest_token_hash,
      maxBytesPerRequest: inbox.max_bytes_per_request,
      expiresAt: inbox.expires_at,
      revision: inbox.revision,
      response: responses.of(inbox),
    }
  }

  /** Counts a request that an inbox refused in this state. Nobody could see the count of one that is gone. */
  function countRefused(inbox: InboxRow | null): void {
    if (!inbox) return
    const state = stateOf(inbox, clock.now())
    if (state === 'manually_destroyed') return
    refusals.count(inbox.public_id, state === 'active' ? 'storage_full' : state)
  }

  /** Asks the store: the token may have been replaced, here or by another instance. */
  async function isSender(publicId: string, token: string | null): Promise<boolean> {
    // Only for a well-formed token, so that guesses cost little.
    if (token === null || !isToken('catch_ingest', token)) return false
    const inbox = await store.inbox(publicId)
    if (!inbox || stateOf(inbox, clock.now()) !== 'active') return false
    return isTokenOf('catch_ingest', token, inbox.ingest_token_hash)
  }

  async function find(inbox: InboxRow, id: string): Promise<EventRow | null> {
    const parsed = parseEventId(id)
    if (!parsed || inbox.expires_at <= clock.now()) return null
    const row = await eventStore.event(inbox.number, parsed.sequence)
    return row && eventId(row) === id.toLowerCase() ? row : null
  }

  async function facts(publicId: string): Promise<InboxFacts | null> {
    const inbox = await remembered.of(publicId)
    if (!inbox || inbox.expiresAt > clock.now()) return inbox
    // It may have been extended since, here or by another instance.
    remembered.forget(publicId)
    return remembered.of(publicId)
  }

  async function ingestOne(inbox: InboxFacts, request: IngestRequest): Promise<InboxFacts | null> {
    const now = clock.now()
    const isAuthenticated =
      (request.tokenHash !== undefined && equalBytes(request.tokenHash, inbox.ingestTokenHash)) ||
      (request.token !== null && isTokenOf('catch_ingest', request.token, inbox.ingestTokenHash))
    const place = locate(request.sourceIp)
    const { path, query, body } = request
    const headers = keptHeaders(request, FORWARDING_HEADERS)
    const bytes = keptBytes({ path, query, headers, body })
    const isStored = await ingest(inbox, {
      salt: randomInt(2 ** 26),
      receivedAt: now,
      access: isAuthenticated ? 'authenticated' : 'public',
      method: request.method,
      path,
      query,
      headerLines: packHeaders(headers),
      mediaType: mediaTypeIn(headers),
      body,
      keptBytes: bytes,
      bodySha256: hash('sha256', body, 'hex'),
      sourceIp: request.sourceIp,
      ipLocation: place === null ? null : JSON.stringify(place),
    })
    if (isStored) {
      onIngested(bytes)
      hints.notify(inbox.publicId)
      return inbox
    }
    // The inbox has ended, is full, or has changed: its cached facts may be out of date.
    remembered.forget(inbox.publicId)
    const current = await store.inbox(inbox.publicId)
    if (current && current.revision !== inbox.revision) {
      const changed = await facts(inbox.publicId)
      return changed && ingestOne(changed, request)
    }
    countRefused(current)
    return null
  }

  return {
    /** The inbox, or null if it does not exist or is over. Its limits are checked when storing. */
    facts,

    /** Whether this token is the ingest token of an active inbox. */
    isSender,

    /** Whether the inbox, as now stored, accepts a request with a body of this length. */
    async takes(publicId: string, bodyBytes: number): Promise<boolean> {
      const inbox = await store.inbox(publicId)
      // A body above the inbox's limit is refused as too large, even if the inbox is full as well.
      const least = Math.min(bodyBytes, inbox?.max_bytes_per_request ?? 0)
      const isTaken =
        inbox !== null &&
        stateOf(inbox, clock.now()) === 'active' &&
        inbox.stored_bytes + least <= inbox.storage_limit_bytes
      if (!isTaken) countRefused(inbox)
      return isTaken
    },

    /** Stores one request durably, and returns the inbox as it was then. Null if the inbox refuses it. */
    ingest: ingestOne,

    /** Counts a request that was refused for another reason than what the three above have found. */
    refused: (inbox: InboxFacts, reason: RefusalReason) => refusals.count(inbox.publicId, reason),

    /** How many requests the inbox refused, and why. */
    refusals: (inbox: InboxRow) => refusals.of(inbox.public_id),

    /** The inbox, if the token owns it. Null if it is unknown, destroyed or owned by another token. */
    owned: tokens.owned,

    /** Makes another token of this kind, or returns null if the inbox is gone or has another owner token. */
    rotateToken: (inbox: InboxRow, kind: 'owner' | 'ingest'): Promise<string | null> =>
      kind === 'owner'
        ? tokens.offer(inbox)
        : tokens.replace('catch_ingest', inbox, (hash) => [
            // Senders are known by the ingest token in what instances have read.
            reviseInbox(inbox.number, clock.now()),
            replaceIngestToken(inbox, hash),
          ]),

    /** Seals the delivery after the owner token was used: the sale's answer is not repeated any more. */
    used: (inbox: InboxRow) => sealing.seal(inbox.public_id),

    status: (inbox: InboxRow): CatchStatus => ({
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

    /** Chooses how requests are answered, or returns to 204. False if the inbox is over. */
    async respond(inbox: InboxRow, response: CatchResponse | null): Promise<boolean> {
      const { number, public_id: publicId } = inbox
      const stored = response ? responses.stored(publicId, response) : NO_RESPONSE
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            revised: reviseInbox(number, clock.now()),
            response: setResponse(number, stored),
          },
        }),
      )
      return 'rows' in done
    },

    ...reading,

    /** One event, or null if the id is unknown or the client has left. */
    async event(inbox: InboxRow, id: string, reservation: Reservation): Promise<EventRow | null> {
      const size = inbox.max_bytes_per_request + MAX_HEAD_BYTES
      if (!(await reservation.reserve(heldBy([{ size }])))) return null
      return reservation.whileReading(() => find(inbox, id))
    },

    async deleteEvent(inbox: InboxRow, id: string): Promise<boolean> {
      const row = await find(inbox, id)
      if (!row) return false
      const done = await attempt(
        db.write({
          lockKey: inbox.public_id,
          statements: { event: deleteEvent(events, inbox.number, row) },
        }),
      )
      return 'rows' in done
    },

    /** Calls back when an inbox may have new events. Returns what stops this; null with too many listeners. */
    listen: hints.listen,

    /** Ends the inbox now; its bytes are deleted within a minute. False if it was destroyed before. */
    async destroy(inbox: InboxRow): Promise<boolean> {
      remembered.forget(inbox.public_id)
      const now = clock.now()
      const done = await attempt(
        db.write({
          lockKey: inbox.public_id,
          statements: {
            inbox: destroyInbox(inbox.number, now),
            // In this unit: nobody owns the inbox any more who could seal it later.
            seal: sealing.statements(inbox.public_id, now),
          },
        }),
      )
      hints.notify(inbox.public_id)
      if ('refused' in done) return false
      sealing.sealed(inbox.public_id)
      return true
    },

    /** Deletes inboxes that are over, and their events. @returns the number of deleted inboxes. */
    purge: createPurge({ db, store, events, refusals }),

    /** Writes what is still in memory. */
    close: refusals.close,
  }
}

const NO_RESPONSE = { response: null, response_secret: null }

/** About the bytes of the facts of an inbox without a chosen answer. */
const USUAL_BYTES = 512
const sizeOfFacts = ({ response }: InboxFacts): number =>
  response && 'body' in response ? 1 + Math.ceil((response.body?.length ?? 0) / USUAL_BYTES) : 1
