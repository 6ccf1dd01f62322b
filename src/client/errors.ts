/** The error class of the SDK. */

/**
 * The service refused a request or answered it unexpectedly, or a purchase ended without its
 * capability.
 *
 * `phrase` is the service's (`order expired`, `catch unavailable`, …; docs/errors.md says what each
 * means for the money), or one of the SDK's, which docs/sdk.md explains:
 * `service unreachable`, `unexpected answer`, `price above the ceiling`, `invoice disagrees`,
 * `payment failed`, `payment outcome unknown`, `paid but not collected`, `second payment refused`,
 * `no event in time`, `inbox ended`, `invalid share code`, `password needed`, `invalid receipt`,
 * `nothing to send`.
 * `status` is the HTTP status, or 0 for an error of the SDK itself. `cause` is the underlying error: a
 * WalletError, or what `fetch` threw.
 *
 * ```ts
 * if (error instanceof MayflyError && error.phrase === 'order expired') console.log(error.status)
 * ```
 */
export class MayflyError extends Error {
  override name = 'MayflyError'
  readonly phrase: string
  readonly status: number
  /** Seconds to wait before trying again (`Retry-After`), or null if the service named none. */
  readonly retryAfterSeconds: number | null
  constructor(
    phrase: string,
    status: number,
    { retryAfterSeconds = null, ...options }: MayflyErrorOptions = {},
  ) {
    super(status === 0 ? phrase : `${phrase} (HTTP ${status})`, options)
    this.phrase = phrase
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** What `MayflyError` carries beside its phrase and status. */
export type MayflyErrorOptions = ErrorOptions & { retryAfterSeconds?: number | null }
