/** Why a call to a stranger's server gave no answer. */

export type OutboundReason =
  /** The URL or the address behind its name is one that is never called. */
  | 'not public'
  | 'ourselves'
  | 'blocked'
  /** The name has no address. */
  | 'nowhere'
  | 'unreachable'
  | 'too slow'
  | 'too large'
  /** Too many calls wait for this server. */
  | 'too busy'
  /** The last calls had no answer, so none is made for a while. */
  | 'paused'

/** The server gave no usable answer. Quotes nothing that it sent. */
export class OutboundError extends Error {
  override name = 'OutboundError'
  readonly reason: OutboundReason
  /** The system's code of a failed connection, such as `ECONNREFUSED`, or an empty text. */
  readonly code: string
  /** The status of the answer, if only its body could not be used. */
  readonly status: number | null

  constructor(
    reason: OutboundReason,
    {
      code = '',
      status = null,
      cause,
    }: { code?: string; status?: number | null; cause?: unknown } = {},
  ) {
    super(`no usable answer: ${reason}${code === '' ? '' : ` (${code})`}`, { cause })
    this.reason = reason
    this.code = code
    this.status = status
  }
}
