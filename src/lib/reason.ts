/** Why a connection failed, in words. A code such as ECONNREFUSED tells a developer, and nobody else. */
import { codeOf } from './errors.ts'

/** More causes than this were made to be a loop. */
const MAX_CAUSES = 5

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was closed before the answer',
  EPIPE: 'the connection was closed before the answer',
  UND_ERR_SOCKET: 'the connection was closed before the answer',
  ENOTFOUND: 'name not found',
  EAI_AGAIN: 'the name cannot be looked up at the moment',
  EHOSTUNREACH: 'no way leads to its address',
  ENETUNREACH: 'no way leads to its network',
  EADDRNOTAVAIL: 'no way leads to its address',
  ETIMEDOUT: 'timed out',
  UND_ERR_CONNECT_TIMEOUT: 'timed out',
  UND_ERR_HEADERS_TIMEOUT: 'timed out',
  UND_ERR_BODY_TIMEOUT: 'timed out',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet, or the clock here is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by an authority unknown here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by an authority unknown here',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate is signed by an authority unknown here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by an authority unknown here',
  EPROTO: 'it does not speak TLS. Is it http, not https?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS. Is it http, not https?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS. Is it http, not https?',
}

/** The reason, or null if the error is not one of a connection. */
export function reasonOf(error: unknown): string | null {
  for (const cause of causesOf(error)) {
    const code = codeOf(cause)
    const known = REASONS[code]
    if (known === 'timed out') return timedOut(cause)
    if (known !== undefined) return known
    if (code.startsWith('HPE_') || cause.name === 'HTTPParserError') return 'it does not speak HTTP'
    if (code.startsWith('CERT_')) return 'its certificate is not valid'
    if (cause.name === 'TimeoutError') return timedOut(cause)
    // What fetch says of ports that browsers refuse.
    if (cause.message === 'bad port') return 'its port is one that is never used for HTTP'
  }
  return null
}

/** With the time, if the error has it. */
function timedOut({ message }: Error): string {
  const [, count, unit] = /(\d+) ?(ms|s)\b/.exec(message) ?? []
  if (count === undefined) return 'timed out'
  return `timed out after ${unit === 'ms' ? Math.round(Number(count) / 1000) : count} s`
}

/** The error, and what it was caused by. Of several addresses of one name, the first stands for all. */
export function causesOf(error: unknown): Error[] {
  const causes: Error[] = []
  let next = error
  while (next instanceof Error && causes.length < MAX_CAUSES) {
    causes.push(next)
    next = next instanceof AggregateError && !next.cause ? next.errors[0] : next.cause
  }
  return causes
}
