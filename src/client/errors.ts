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
 * `status` is the HTTP status, or 0 for an error of the SDK itself. Of a 400, `field` is the member or header at
 * fault and `expected` what it must be, where the service says so. `cause` is the underlying error: a
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
  /** Of a 400: the member or header that is wrong, such as `graceSeconds`, or null. */
  readonly field: string | null
  /** Of a 400: what it must be, such as `60 to 604800`, or null. */
  readonly expected: string | null
  constructor(
    phrase: string,
    status: number,
    {
      retryAfterSeconds = null,
      field = null,
      expected = null,
      ...options
    }: MayflyErrorOptions = {},
  ) {
    const fault = faultIn({ field, expected })
    const told = fault === null ? `HTTP ${status}` : `HTTP ${status}; ${fault}`
    super(status === 0 ? phrase : `${phrase} (${told})`, options)
    this.phrase = phrase
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
    this.field = field
    this.expected = expected
  }
}

/** What `MayflyError` carries beside its phrase and status. */
export type MayflyErrorOptions = ErrorOptions & {
  retryAfterSeconds?: number | null
  field?: string | null
  expected?: string | null
}

/** `graceSeconds: 60 to 604800`, or null if the service did not say. */
export function faultIn({
  field,
  expected,
}: Pick<MayflyError, 'field' | 'expected'>): string | null {
  const parts = [field, expected].filter((part) => part !== null)
  return parts.length > 0 ? parts.join(': ') : null
}
