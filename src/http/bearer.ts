/** Bearer tokens of RFC 6750, as far as they concern us: one header, one token. */
import type { IncomingMessage } from 'node:http'
import { isToken, type TokenKind } from '../lib/ids.ts'

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i

/** The bearer token of a request, or null where there is none, several, or another scheme. */
export function bearerToken(request: IncomingMessage): string | null {
  // Building the distinct headers costs more than the rest of an ingest's checks together.
  if (request.headers.authorization === undefined) return null
  const lines = request.headersDistinct.authorization
  if (lines?.length !== 1) return null
  return BEARER.exec(lines[0] ?? '')?.[1] ?? null
}

/** The bearer token of a request, if it is well formed and of this kind. */
export function bearerOf(request: IncomingMessage, kind: TokenKind): string | null {
  const token = bearerToken(request)
  return token !== null && isToken(kind, token) ? token : null
}
