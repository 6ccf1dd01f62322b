/** A visit to a paid route, and what is decided about it. */
import type { ProtectedRequest } from '../client/gate.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import type { Refused } from './refusals.ts'
import type { Answer as StoredAnswer } from './stored-answers.ts'

export type Visit = ProtectedRequest & {
  body: Uint8Array<ArrayBuffer>
  /** The network of the visitor, where it is known. */
  network: string | null
  /** A header's value, several lines joined with `, `; null where there is none. */
  header(name: string): string | null
  /** Whether nobody waits for an answer any more. */
  isGone(): boolean
}

/** The right to run the handler once, and how to report what became of it. */
export type Admission = {
  receipt: GateReceipt
  headers: Record<string, string>
  /** Whether `spent` should be given a small answer that is whole. */
  wantsAnswer: boolean
  spent(answer?: StoredAnswer): void
  /** The server failed while its client was connected. */
  failed(): Promise<void>
}

export type Decision =
  /** The handler may run, once. */
  | ({ kind: 'admitted' } & Admission)
  /** The answer, as it is. */
  | Refused
