/** The error class of the SDK. */
import type { Phrase as ServicePhrase } from '../protocol/errors.ts'

/** The phrases of the SDK itself, each with its row in docs/sdk.md. */
export const SDK_PHRASES = [
  'service unreachable',
  'unexpected answer',
  'price above the ceiling',
  'price disagrees',
  'invoice disagrees',
  'payment failed',
  'payment outcome unknown',
  'paid but not collected',
  'second payment refused',
  'no event in time',
  'inbox ended',
  'nothing to send',
  'invalid share code',
  'password needed',
  'invalid receipt',
] as const

/**
 * Every phrase of a `MayflyError`: those of the service (docs/reference/errors.md) and those of the SDK (docs/sdk.md). A service
 * that is newer than the SDK may say another one.
 *
 * ```ts
 * const isGone: MayflyPhrase[] = ['not found', 'unauthorized']
 * ```
 */
export type MayflyPhrase = ServicePhrase | (typeof SDK_PHRASES)[number]

/**
 * The service refused a request or answered it unexpectedly, or a purchase ended without its
 * capability.
 *
 * `phrase` is one of `MayflyPhrase`; docs/reference/errors.md and docs/sdk.md say what each means for the money.
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
  readonly phrase: MayflyPhrase
  readonly status: number
  /** Seconds to wait before trying again (`Retry-After`), or null if the service named none. */
  readonly retryAfterSeconds: number | null
  /** Of a 400: the member or header that is wrong, such as `graceSeconds`, or null. */
  readonly field: string | null
  /** Of a 400: what it must be, such as `60 to 604800`, or null. */
  readonly expected: string | null
  constructor(
    phrase: MayflyPhrase,
    status: number,
    {
      retryAfterSeconds = null,
      field = null,
      expected = null,
      ...options
    }: MayflyErrorOptions = {},
  ) {
    const told = [
      `HTTP ${status}`,
      faultIn({ field, expected }),
      retryAfterSeconds === null ? null : `try again in ${retryAfterSeconds} s`,
    ].filter((part) => part !== null)
    super(status === 0 ? phrase : `${phrase} (${told.join('; ')})`, options)
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

/** The phrase of an answer, or null. The service may be anybody's, so no text that could steer a terminal is one. */
export function phraseOf(error: unknown): MayflyPhrase | null {
  const isPhrase = typeof error === 'string' && /^[A-Za-z0-9][A-Za-z0-9 '-]{0,79}$/.test(error)
  return isPhrase ? (error as MayflyPhrase) : null
}
