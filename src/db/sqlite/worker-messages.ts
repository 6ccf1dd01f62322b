/** What the threads of a store are asked, and what they answer. */
import type { Value } from '../db.ts'
import type { Failure } from './failure.ts'
import type { Message } from './message.ts'
import type { NamedMap } from './row-maps.ts'
import type { Table } from './table.ts'

export type WorkerOptions = {
  file: string
  /** A scanner reads in slices of a long work, and gives way to everybody else. */
  role: 'writer' | 'reader' | 'scanner'
  truncateEveryMs: number
}

export type Request =
  /** For a thread that has no open file. */
  | { kind: 'open'; options: WorkerOptions; ring: SharedArrayBuffer | null }
  /** There are units in the ring, and this thread waited for them. */
  | { kind: 'wake' }
  /** Units that do not fit into a block of the ring, which says when it is their turn. */
  | { kind: 'units'; message: Message; isFlushed: boolean }
  /** Each a unit of one statement. `maps` are those of the queries at the same places; null if none has one. */
  | { kind: 'queries'; message: Message; maps: (NamedMap | null)[] | null }
  | { kind: 'run'; text: string; values: Value[] }
  | { kind: 'close' }

/** Null for a unit that succeeded and returned no rows, as most do. */
export type UnitResult = null | { tables: (Table | null)[] } | { refused: number } | Failure
export type QueryResult = { table: Table | null } | Failure
/** In the order of the units. A number: so many units succeeded, and none returned rows. */
export type Committed = number | UnitResult[]
/** In the order of the requests. Units are answered by the commit that they were in. */
export type Reply =
  | { kind: 'units'; results: Committed }
  | { kind: 'queries'; results: QueryResult[] }
  | { kind: 'run'; result: QueryResult }
  | { kind: 'closed' }
  | { kind: 'opened' }
  | { kind: 'unusable'; code: string; message: string }
