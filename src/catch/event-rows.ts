/** Events as rows: what a reader asks the store for. */
import type { Row } from '../db/db.ts'
import type { Access } from './schema.ts'

export type EventRow = {
  sequence: number
  salt: number
  received_at: number
  access: Access
  method: string
  path: string
  query: string
  header_lines: Uint8Array
  content_type: string | null
  body: Uint8Array
  body_bytes: number
  body_sha256: string
  source_ip: string
  ip_location: string | null
} & Row

/** An event and an upper bound of its size in bytes. Of a large event, only the size is read. */
export type WholeEvent = EventRow & { size: number }
export type EventSize = WholeEvent | ({ sequence: number; size: number; body: null } & Row)

/** The parts of an event that a search looks at. */
export type SearchedEvent = {
  sequence: number
  body_bytes: number
  path: string
  query: string
  content_type: string | null
  header_lines: Uint8Array
  body: Uint8Array
} & Row

/** Whether the row has the whole event, and not only its size. */
export const isWhole = (row: EventSize): row is WholeEvent => row.body !== null

/**
 * A whole page as JSON in one row, with its last sequence, or 0 if it is empty; or each of its events as a row,
 * with its size alone. `next` is the cursor of what follows the page.
 */
export type PageRow = {
  json: Uint8Array | null
  sequence: number
  size: number
  next: number | null
} & Row

/** An event in JSON. */
export type JsonRow = { sequence: number; json: Uint8Array } & Row

/** An event in which a search has found its text; without bytes, the last one that it has looked at. */
export type FoundRow = { sequence: number; body_bytes: number | null } & Row

/** What a search has found. `nextCursor` is null if no older events are left to search, or newer ones are. */
export type Found = { sequences: number[]; nextCursor: number | null }
