/** What can go wrong for a caller of the SDK, in one class. */

/**
 * The service said no, or could not be understood.
 *
 * `phrase` is the service's own (`order expired`, `catch unavailable`, …; docs/errors.md says what
 * each means for the money), or one of the SDK's: `unexpected answer`, `price above the ceiling`,
 * `invalid share code`, `password needed`.
 * `status` is the HTTP status, 0 where the SDK itself refused.
 */
export class MayflyError extends Error {
  override name = 'MayflyError'
  readonly phrase: string
  readonly status: number
  /** Seconds to wait before trying again, where the service said so. */
  readonly retryAfterSeconds: number | null
  constructor(phrase: string, status: number, retryAfterSeconds: number | null = null) {
    super(status === 0 ? phrase : `${phrase} (HTTP ${status})`)
    this.phrase = phrase
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}
