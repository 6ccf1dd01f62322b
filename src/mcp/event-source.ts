/** Where the events of a subscription come from. A source keeps nothing: all that it knows is in the cursor. */
import type { EventName } from '../mcp-tools/events.ts'
import type { Call } from './call.ts'

/** One event, as MCP Events has it. */
export type Occurrence = {
  /** The same whenever the same event is told again. */
  eventId: string
  name: EventName
  /** RFC 3339. */
  timestamp: string
  data: Record<string, unknown>
}

/** An event, and the cursor after it. */
export type Placed = { event: Occurrence; cursor: string }

export type Found = {
  /** Oldest first. */
  placed: Placed[]
  /** How far the source has looked. Nothing up to here comes again. */
  cursor: string
  /** Events were left out between the given cursor and these. */
  isTruncated: boolean
  hasMore: boolean
  /** Why nothing can come for now, or null. */
  isClosed: boolean
}

export type Asked = {
  cursor: string
  /** How many events at most. */
  limit: number
  /** How long to wait for one. 0 answers at once. */
  waitSeconds: number
}

export type EventSource = {
  /** The cursor of now. @throws Ended, Refusal */
  start(call: Call): Promise<string>
  /** What came after a cursor. @throws Ended, InvalidCursor, Refusal */
  after(call: Call, asked: Asked): Promise<Found>
}

/** A subscription, as one request describes it. */
export type Subscription = {
  source: EventSource
  call: Call
  /** Null: from now on. */
  cursor: string | null
  /** Unix milliseconds. Older events are left out. */
  notBefore: number
  limit: number
}

/** Leaves out what is older than a subscription wants. */
export function notOlder(found: Found, notBefore: number): Found {
  const placed = found.placed.filter(({ event }) => Date.parse(event.timestamp) >= notBefore)
  return { ...found, placed, isTruncated: found.isTruncated || placed.length < found.placed.length }
}

/** What the subscription is about has ended, or may no longer be followed. */
export class Ended extends Error {
  override name = 'Ended'
}

/** No source made this cursor. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}
