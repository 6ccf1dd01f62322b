/**
 * What went wrong with LND, told apart so that start-up can name the remedy. Messages go to logs:
 * they carry no macaroon, preimage or invoice, and no `cause`, for a parser's error quotes bytes.
 */
export type LndFailure = 'unreachable' | 'timeout' | 'certificate' | 'refused' | 'malformed'

export class LndError extends Error {
  override name = 'LndError'
  readonly reason: LndFailure
  /** The gRPC code and message of LND's own answer, where it gave one. */
  readonly answer: { code: number; message: string } | undefined

  constructor(reason: LndFailure, message: string, answer?: { code: number; message: string }) {
    super(`LND: ${message}`)
    this.reason = reason
    this.answer = answer
  }
}

const MAX_QUOTED_CHARACTERS = 200

/** The node's own words, shortened, without anything long enough to be a secret or an invoice. */
export function quotable(text: string): string {
  return text
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '…')
    .replaceAll(/[^\x20-\x7e…]/g, ' ')
    .slice(0, MAX_QUOTED_CHARACTERS)
}

/** What Node's or undici's error means, for a call that does `what`. */
export function transportError(what: string, error: unknown): LndError {
  if (error instanceof LndError) return error
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new LndError('timeout', `${what} took too long`)
  }
  const code = codeOf(error)
  const isCertificate = CERTIFICATE_CODE.test(code)
  return new LndError(isCertificate ? 'certificate' : 'unreachable', `${what} failed (${code})`)
}

// OpenSSL's verification codes have no common prefix; ERR_SSL_WRONG_VERSION_NUMBER (plain HTTP on
// the other side) is deliberately not among them.
const CERTIFICATE_CODE = /CERT|UNABLE_TO_(GET|VERIFY)|ERR_TLS_/

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
