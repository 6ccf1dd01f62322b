/** Inboxes and events in the store. Limits are conditions of the statements that use them up. */
import type { Db, Row, Statement, Value } from '../db/db.ts'
import type { PlanId } from '../payment/provisioning.ts'
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
  headers: string
  content_type: string | null
  body: Uint8Array
  body_bytes: number
  body_sha256: string
  source_ip: string
  ip_location: string | null
} & Row

/** An event without its body, to choose by. */
type EventText = {
  sequence: number
  body_bytes: number
  path: string
  query: string
  content_type: string | null
} & Row

export type NewEvent = {
  salt: number
  receivedAt: number
  access: Access
  method: string
  path: string
  query: string
  headers: string
  contentType: string | null
  mediaType: string | null
  body: Uint8Array
  bodySha256: string
  sourceIp: string
  ipLocation: string | null
}

/** Part of a page, newest first. `nextCursor` is null where nothing more is below it. */
export type Newest = { rows: EventRow[]; nextCursor: number | null }

export type EventFilter = {
  below: number
  access?: Access
  method?: string
  mediaType?: string
}

const eventColumns = (body: string): string =>
  `sequence, salt, received_at, access, method, path, query, headers, content_type, ${body},
  body_bytes, body_sha256, source_ip, ip_location`
const EVENT_COLUMNS = eventColumns('body')

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
   ip_location, path, query, content_type, headers, body_sha256, body)
  select $1, last_sequence - $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
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
    bytes += event.body.length
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
        event.headers,
        event.bodySha256,
        event.body,
      ],
      expect: 1,
    })),
  ]
}

/** Frees the event's bytes, never its count; the salt stands for the rest of its id. */
export const deleteEvent = (publicId: string, sequence: number, salt: number): Statement[] => [
  {
    text: `update catch_inbox set stored_bytes = stored_bytes - (
        select body_bytes from catch_event where public_id = $1 and sequence = $2 and salt = $3)
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
    over(now: number, shownSince: number, limit: number): Promise<InboxRow[]> {
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
     * The newest events that the filter lets through: at most `limit`, and no more than `bytes` of
     * bodies, but at least one. Where bodies are large they are chosen by their sizes first, so that
     * no other body is read.
     */
    async newest(
      publicId: string,
      filter: EventFilter,
      most: { limit: number; bytes: number },
    ): Promise<Newest> {
      const { where, values } = conditions(publicId, filter)
      const next = values.length + 1
      const small = await db.read<EventRow>(
        `select ${smallEvent(next)} from catch_event where ${where}
         order by sequence desc ${limitedTo(next + 1)}`,
        ...values,
        bytesEach(most.bytes, most.limit + 1),
        most.limit + 1,
      )
      if (small.every(isWhole)) {
        const rows = small.slice(0, most.limit)
        const hasMore = rows.length < small.length
        return { rows, nextCursor: hasMore ? (rows.at(-1)?.sequence ?? null) : null }
      }
      const sizes = await db.read<{ sequence: number; body_bytes: number }>(
        `select sequence, body_bytes from catch_event where ${where}
         order by sequence desc ${limitedTo(values.length + 1)}`,
        ...values,
        most.limit + 1,
      )
      const chosen = fitting(sizes.slice(0, most.limit), most.bytes)
      const last = chosen.at(-1)
      if (!last) return { rows: [], nextCursor: null }
      const rows = await db.read<EventRow>(
        `select ${EVENT_COLUMNS} from catch_event where ${where} and sequence >= $${values.length + 1}
         order by sequence desc`,
        ...values,
        last.sequence,
      )
      return { rows, nextCursor: chosen.length < sizes.length ? last.sequence : null }
    },

    /** The events above a sequence, oldest first, within the same bounds. */
    async oldest(
      publicId: string,
      above: number,
      most: { limit: number; bytes: number },
    ): Promise<EventRow[]> {
      const small = await db.read<EventRow>(
        `select ${smallEvent(3)} from catch_event where public_id = $1 and sequence > $2
         order by sequence ${limitedTo(4)}`,
        publicId,
        above,
        bytesEach(most.bytes, most.limit),
        most.limit,
      )
      if (small.every(isWhole)) return small
      const sizes = await db.read<{ sequence: number; body_bytes: number }>(
        `select sequence, body_bytes from catch_event where public_id = $1 and sequence > $2
         order by sequence ${limitedTo(3)}`,
        publicId,
        above,
        most.limit,
      )
      const last = fitting(sizes, most.bytes).at(-1)
      if (!last) return []
      return db.read<EventRow>(
        `select ${EVENT_COLUMNS} from catch_event
         where public_id = $1 and sequence > $2 and sequence <= $3 order by sequence`,
        publicId,
        above,
        last.sequence,
      )
    },

    /** The short texts of the newest events that the filter lets through, for a search. */
    texts(publicId: string, filter: EventFilter, limit: number): Promise<EventText[]> {
      const { where, values } = conditions(publicId, filter)
      return db.read<EventText>(
        `select sequence, body_bytes, path, query, content_type from catch_event where ${where}
         order by sequence desc ${limitedTo(values.length + 1)}`,
        ...values,
        limit,
      )
    },

    bodies(
      publicId: string,
      sequences: number[],
    ): Promise<({ sequence: number; body: Uint8Array } & Row)[]> {
      return db.read(
        `select sequence, body from catch_event where public_id = $1 and sequence in (${places(2, sequences)})`,
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

/** An event without its body where that is larger than the parameter: so many of them surely fit. */
const smallEvent = (place: number): string =>
  eventColumns(`case when body_bytes <= $${place} then body end as body`)

const bytesEach = (bytes: number, events: number): number => Math.floor(bytes / events)

const isWhole = ({ body }: { body: Uint8Array | null }): boolean => body !== null

/** The first of these whose bodies fit, but at least one. */
function fitting<T extends { body_bytes: number }>(sizes: T[], most: number): T[] {
  let bytes = 0
  const cut = sizes.findIndex(({ body_bytes }, place) => {
    bytes += body_bytes
    return bytes > most && place > 0
  })
  return cut === -1 ? sizes : sizes.slice(0, cut)
}

function conditions(publicId: string, filter: EventFilter): { where: string; values: Value[] } {
  const parts: [string, Value][] = [
    ['public_id =', publicId],
    ['sequence <', filter.below],
  ]
  if (filter.access !== undefined) parts.push(['access =', filter.access])
  if (filter.method !== undefined) parts.push(['method =', filter.method])
  if (filter.mediaType !== undefined) parts.push(['media_type =', filter.mediaType])
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
