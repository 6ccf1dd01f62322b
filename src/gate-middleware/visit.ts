/** A visit to a paid route, and the decision about it. */
import type { ProtectedRequest } from '../client/gate.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import type { Refused } from './refusals.ts'
import type { Answer as StoredAnswer } from './stored-answers.ts'

export type Visit = ProtectedRequest & {
  body: Uint8Array<ArrayBuffer>
  /** The network of the visitor, or null if unknown. */
  network: string | null
  /** A header's value, with several lines joined by `, `; null without it. */
  header(name: string): string | null
  /** Whether the client has left. */
  isGone(): boolean
}

/** The permission to run the handler once, and the functions that report its outcome. */
export type Admission = {
  receipt: GateReceipt
  headers: Record<string, string>
  /** Whether to pass a small, complete answer to `spent`. */
  wantsAnswer: boolean
  spent(answer?: StoredAnswer): void
  /** The server failed while its client was connected. */
  failed(): Promise<void>
}

export type Decision =
  /** The handler may run once. */
  | ({ kind: 'admitted' } & Admission)
  /** The complete answer to a refused visit. */
  | Refused
