/** What can go wrong for a caller of the SDK, in one class. */

/**
 * The service said no, could not be understood, or a purchase ended without its capability.
 *
 * `phrase` is the service's own (`order expired`, `catch unavailable`, …; docs/errors.md says what
 * each means for the money), or one of the SDK's, which docs/sdk.md explains:
 * `service unreachable`, `unexpected answer`, `price above the ceiling`, `invoice disagrees`,
 * `payment failed`, `payment outcome unknown`, `paid but not collected`, `second payment refused`,
 * `no event in time`, `inbox ended`, `invalid share code`, `password needed`, `invalid receipt`,
 * `nothing to send`.
 * `status` is the HTTP status, 0 where the SDK itself refused. `cause` is what lies behind it: a
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
  /** Seconds to wait before trying again, where the service said so. */
  readonly retryAfterSeconds: number | null
  constructor(
    phrase: string,
    status: number,
    retryAfterSeconds: number | null = null,
    options?: ErrorOptions,
  ) {
    super(status === 0 ? phrase : `${phrase} (HTTP ${status})`, options)
    this.phrase = phrase
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}
