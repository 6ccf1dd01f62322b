/**
 * L402 on the wire (bLIP 26): the challenge and the credential, for server and browser alike. The
 * macaroon is opaque here; l402-token.ts mints and verifies it.
 */
import { base64Bytes } from '../lib/bytes.ts'
import { authScheme, serialiseChallenge } from './auth-params.ts'

export type L402Challenge = {
  /** Standard base64 with padding: some clients decode nothing else. */
  macaroon: string
  invoice: string
}

export type L402Credential = { macaroon: Uint8Array; preimage: string }

/** base64 of the 4 KiB that a macaroon may have. */
const MAX_MACAROON_CHARS = 5464
/** Clients send two, LSAT and L402; reading more would only cost time. */
const MAX_CREDENTIAL_LINES = 4

/**
 * The `WWW-Authenticate` field value. Clients match it with expressions: the scheme in upper case,
 * `macaroon` before `invoice`, both quoted, comma and space between them.
 */
export function l402ChallengeField(challenge: L402Challenge): string {
  const { macaroon, invoice } = challenge
  return serialiseChallenge('L402', { macaroon, invoice })
}

/**
 * The credential among the `Authorization` field lines of a request. Some clients send it twice, as LSAT
 * and as L402: equal lines count as one credential, different lines contradict each other.
 */
export function readL402Credential(
  fieldLines: readonly string[],
): L402Credential | 'none' | 'malformed' {
  const lines = fieldLines.filter((line) => isL402Scheme(authScheme(line)))
  if (lines.length === 0) return 'none'
  if (lines.length > MAX_CREDENTIAL_LINES) return 'malformed'
  const seen = new Set<string>()
  for (const line of lines) {
    if (line.length > MAX_MACAROON_CHARS + 128) return 'malformed'
    const match = CREDENTIAL.exec(line)
    // The specification allows several macaroons in one credential; no implementation sends them.
    if (match === null) return 'malformed'
    seen.add(`${match[1]}:${match[2]?.toLowerCase()}`)
  }
  const [macaroonText = '', preimage = ''] = [...seen][0]?.split(':') ?? []
  const macaroon = seen.size === 1 ? base64Bytes(macaroonText) : null
  return macaroon === null ? 'malformed' : { macaroon, preimage }
}

/**
 * The macaroons of all L402 lines, whatever else stands in them. A credential that cannot be read may still
 * show a genuine macaroon of a paid order: its sender must not be asked to pay again.
 */
export function l402MacaroonsIn(fieldLines: readonly string[]): Uint8Array[] {
  return fieldLines
    .slice(0, MAX_CREDENTIAL_LINES)
    .map((line) => LEADING_MACAROON.exec(line)?.[1] ?? '')
    .filter((text) => text !== '' && text.length <= MAX_MACAROON_CHARS)
    .map((text) => base64Bytes(text))
    .filter((bytes) => bytes !== null)
}

const LEADING_MACAROON = /^[ \t]*(?:L402|LSAT)[ \t]+([A-Za-z0-9+/_-]+={0,2})/i
const CREDENTIAL = /^[ \t]*(?:L402|LSAT)[ \t]+([A-Za-z0-9+/_-]+={0,2}):([0-9a-f]{64})[ \t]*$/i

function isL402Scheme(scheme: string | null): boolean {
  return scheme === 'l402' || scheme === 'lsat'
}
