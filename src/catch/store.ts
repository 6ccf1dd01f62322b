/** Inboxes and events in the store. Limits are conditions of the statements that use them up. */
import type { Db, Row, Statement, Value } from '../db/db.ts'
import type { DeletionTime } from '../lib/clock.ts'
import type { PlanId } from '../lib/product-names.ts'
import { MAX_TYPE_COLUMN } from './kept.ts'
import type { Access } from './schema.ts'

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

export type EventRow = {
  sequence: number
  salt: number
  received_at: number
  access: Access
  method: string
  path: string
  query: string
  /** JSON, of an event from before `header_lines`; else an empty list. */
  headers: string
  header_lines: Uint8Array | null
  content_type: string | null
  body: Uint8Array
  body_bytes: number
  body_sha256: string
  source_ip: string
  ip_location: string | null
} & Row

/** An event with the bytes of it at most, or where it is large these alone. */
export type WholeEvent = EventRow & { size: number }
export type EventSize = WholeEvent | ({ sequence: number; size: number; body: null } & Row)

/** What a search looks at of an event. A long content type is in `header_lines` alone. */
export type SearchedEvent = {
  sequence: number
  body_bytes: number
  path: string
  query: string
  content_type: string | null
  headers: string
  header_lines: Uint8Array | null
  body: Uint8Array
} & Row

export type NewEvent = {
  salt: number
  receivedAt: number
  access: Access
  method: string
  path: string
  query: string
  headerLines: Uint8Array
  contentType: string | null
  mediaType: string | null
  body: Uint8Array
  /** What it takes of its inbox's storage. */
  keptBytes: number
  bodySha256: string
  sourceIp: string
  ipLocation: string | null
}

export type EventFilter = {
  below: number
  /** Columns, and the values that they must have. */
  equal: [column: string, value: string][]
}

const EVENT_COLUMNS = `sequence, salt, received_at, access, method, path, query, headers,
  content_type, header_lines, body, body_bytes, body_sha256, source_ip, ip_location`
/** Of an event from before the other headers this is all there is, and the reader sees that. */
const JSON_OF_NO_HEADERS = '[]'

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
    values ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, $8, $9)`,
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

const TAKE_PLACES = `update catch_inbox
  set accepted_request_count = accepted_request_count + $2, stored_bytes = stored_bytes + $3,
      last_sequence = last_sequence + $2
  where public_id = $1 and destroyed_at is null and suspended_at is null and expires_at > $4
    and accepted_request_count + $2 <= request_limit and stored_bytes + $3 <= storage_limit_bytes`

const INSERT_EVENT = `insert into catch_event
  (public_id, sequence, salt, received_at, access, method, media_type, body_bytes, source_ip,
   ip_location, path, query, content_type, headers, body_sha256, body, kept_bytes, header_lines)
  select $1, last_sequence - $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
         '${JSON_OF_NO_HEADERS}', $14, $15, $16, $17
  from catch_inbox where public_id = $1 and last_sequence > $2
  on conflict (public_id, sequence) do nothing`

/**
 * Takes the places of events of one inbox, then stores them there in their order. The first statement
 * carries every limit and state, so that under any concurrency no event is stored that the inbox has
 * no room for. Where it is refused and the others are sent all the same, those find their places
 * taken.
 */
export function insertEvents(publicId: string, events: NewEvent[]): Statement[] {
  const last = events.length - 1
  let bytes = 0
  let receivedAt = 0
  for (const event of events) {
    bytes += event.keptBytes
    receivedAt = Math.max(receivedAt, event.receivedAt)
  }
  return [
    { text: TAKE_PLACES, values: [publicId, events.length, bytes, receivedAt], expect: 1 },
    ...events.map((event, place) => ({
      text: INSERT_EVENT,
      values: [
        publicId,
        last - place,
        event.salt,
        event.receivedAt,
        event.access,
        event.method,
        event.mediaType,
        event.body.length,
        event.sourceIp,
        event.ipLocation,
        event.path,
        event.query,
        event.contentType,
        event.bodySha256,
        event.body,
        event.keptBytes,
        event.headerLines,
      ],
      expect: 1,
    })),
  ]
}

/** Gives back the bytes that the event took, never its count; the salt stands for the rest of its id. */
export const deleteEvent = (publicId: string, sequence: number, salt: number): Statement[] => [
  {
    text: `update catch_inbox set stored_bytes = stored_bytes - (
        select coalesce(kept_bytes, body_bytes) from catch_event
        where public_id = $1 and sequence = $2 and salt = $3)
      where public_id = $1 and exists (
        select 1 from catch_event where public_id = $1 and sequence = $2 and salt = $3)`,
    values: [publicId, sequence, salt],
    expect: 1,
  },
  {
    text: 'delete from catch_event where public_id = $1 and sequence = $2',
    values: [publicId, sequence],
    expect: 1,
  },
]

export const destroyInbox = (publicId: string, now: number): Statement => ({
  text: `update catch_inbox set destroyed_at = $2 where public_id = $1 and destroyed_at is null`,
  values: [publicId, now],
  expect: 1,
})

export const suspendInbox = (publicId: string, now: number): Statement => ({
  text: `update catch_inbox set suspended_at = $2
    where public_id = $1 and suspended_at is null and destroyed_at is null`,
  values: [publicId, now],
  expect: 1,
})

export const resumeInbox = (publicId: string): Statement => ({
  text: `update catch_inbox set suspended_at = null
    where public_id = $1 and suspended_at is not null and destroyed_at is null`,
  values: [publicId],
  expect: 1,
})

/** A bounded part of an inbox's events, so that no purge holds up the writer for long. */
export const purgeEvents = (publicId: string, most: number): Statement => ({
  text: `delete from catch_event where public_id = $1 and sequence in (
      select sequence from catch_event where public_id = $1 order by sequence limit $2)
    returning sequence`,
  values: [publicId, most],
})

export const dropInbox = (publicId: string): Statement => ({
  text: `delete from catch_inbox where public_id = $1
    and not exists (select 1 from catch_event where public_id = $1)`,
  values: [publicId],
})

export function createCatchStore(db: Db) {
  return {
    async inbox(publicId: string): Promise<InboxRow | null> {
      const [inbox] = await db.read<InboxRow>(
        'select * from catch_inbox where public_id = $1 and destroyed_at is null',
        publicId,
      )
      return inbox ?? null
    },

    /**
     * Inboxes with something to purge: destroyed, expired before `shownSince`, or expired and not
     * empty yet. An empty one that is still shown is none, or many of them would hide the rest.
     */
    over(now: DeletionTime, shownSince: DeletionTime, limit: number): Promise<InboxRow[]> {
      return db.read<InboxRow>(
        `select * from catch_inbox where destroyed_at is not null or expires_at <= $2
           or (expires_at <= $1 and exists (
             select 1 from catch_event where catch_event.public_id = catch_inbox.public_id))
         limit $3`,
        now,
        shownSince,
        limit,
      )
    },

    /**
     * The newest events that the filter lets through, at most `limit`. Those that are larger than
     * their part of `bytes` are told by their sizes alone.
     */
    newest(
      publicId: string,
      filter: EventFilter,
      most: { limit: number; bytes: number },
    ): Promise<EventSize[]> {
      const { where, values } = conditions(publicId, filter)
      return db.read<EventSize>(
        `select ${smallEvent(values.length + 1)} from catch_event where ${where}
         order by sequence desc ${limitedTo(values.length + 2)}`,
        ...values,
        bytesEach(most.bytes, most.limit),
        most.limit,
      )
    },

    /** The events above a sequence, oldest first, in the same way. */
    oldest(
      publicId: string,
      above: number,
      most: { limit: number; bytes: number },
    ): Promise<EventSize[]> {
      return db.read<EventSize>(
        `select ${smallEvent(3)} from catch_event where public_id = $1 and sequence > $2
         order by sequence ${limitedTo(4)}`,
        publicId,
        above,
        bytesEach(most.bytes, most.limit),
        most.limit,
      )
    },

    /** These events, newest first, in the same way. */
    async sized(publicId: string, sequences: number[], bytes: number): Promise<EventSize[]> {
      if (sequences.length === 0) return []
      return db.read<EventSize>(
        `select ${smallEvent(2)} from catch_event
         where public_id = $1 and sequence in (${places(3, sequences)}) order by sequence desc`,
        publicId,
        bytesEach(bytes, sequences.length),
        ...sequences,
      )
    },

    /**
     * For a search, how large the events are that the filter lets through among the next `limit` below.
     * `last` is how far that is, whatever the filter, and null where nothing is below: no filter makes
     * this look at more events.
     */
    async sizes(
      publicId: string,
      filter: EventFilter,
      limit: number,
    ): Promise<{ sizes: { sequence: number; bytes: number }[]; last: number | null }> {
      const [window] = await db.read<{ last: number | null }>(
        `select min(sequence) as last from (
           select sequence from catch_event where public_id = $1 and sequence < $2
           order by sequence desc ${limitedTo(3)}) as below`,
        publicId,
        filter.below,
        limit,
      )
      const last = window?.last ?? null
      if (last === null) return { sizes: [], last }
      const { where, values } = conditions(publicId, filter)
      const sizes = await db.read<{ sequence: number; bytes: number }>(
        `select sequence, body_bytes + octet_length(path) + octet_length(query) as bytes
         from catch_event where ${where} and sequence >= $${values.length + 1}
         order by sequence desc`,
        ...values,
        last,
      )
      return { sizes, last }
    },

    /** What a search looks at of these events, newest first. */
    searched(publicId: string, sequences: number[]): Promise<SearchedEvent[]> {
      return db.read<SearchedEvent>(
        `select sequence, body_bytes, path, query, content_type, '' as headers,
           case when content_type is null and octet_length(header_lines) > ${MAX_TYPE_COLUMN}
             then header_lines end as header_lines, body
         from catch_event where public_id = $1 and sequence in (${places(2, sequences)})
         order by sequence desc`,
        publicId,
        ...sequences,
      )
    },

    /** Whole events, newest first. */
    events(publicId: string, sequences: number[]): Promise<EventRow[]> {
      return db.read<EventRow>(
        `select ${EVENT_COLUMNS} from catch_event
         where public_id = $1 and sequence in (${places(2, sequences)}) order by sequence desc`,
        publicId,
        ...sequences,
      )
    },
  }
}

export type CatchStore = ReturnType<typeof createCatchStore>

/**
 * What may be long of an event, in bytes. The header lines stand behind the body and would be read
 * through it, so that of a large event only their limit counts.
 */
const BEFORE_LINES =
  'body_bytes + octet_length(path) + octet_length(query) + octet_length(headers) + coalesce(octet_length(content_type), 0)'
/** As many bytes as the head of a request has at most, and the lengths of its lines. */
const HEADER_LINES_MOST = 34 * 1024

/** An event, or its size alone where that is above the parameter: so many of them surely fit. */
const smallEvent = (place: number): string => {
  const isSmall = `${BEFORE_LINES} <= $${place} and coalesce(octet_length(header_lines), 0) <= $${place}`
  const small = (column: string): string => `case when ${isSmall} then ${column} end as ${column}`
  const long = ['path', 'query', 'headers', 'content_type', 'header_lines', 'body']
  return `sequence, salt, received_at, access, method, ${long.map(small).join(', ')},
    body_bytes, body_sha256, source_ip, ip_location,
    ${BEFORE_LINES} + ${HEADER_LINES_MOST} as size`
}

const bytesEach = (bytes: number, events: number): number => Math.floor(bytes / events)

function conditions(publicId: string, filter: EventFilter): { where: string; values: Value[] } {
  const parts: [string, Value][] = [
    ['public_id =', publicId],
    ['sequence <', filter.below],
  ]
  for (const [column, value] of filter.equal) parts.push([`${column} =`, value])
  return {
    where: parts.map(([condition], i) => `${condition} $${i + 1}`).join(' and '),
    values: parts.map(([, value]) => value),
  }
}

/**
 * A sum, because SQLite looks at a limit that is a parameter when it plans, and would plan anew for
 * each execution.
 */
const limitedTo = (place: number): string => `limit $${place} + 0`

function places(first: number, values: unknown[]): string {
  return values.map((_, i) => `$${first + i}`).join(', ')
}
