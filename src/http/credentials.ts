/** Bearer tokens (RFC 6750): one header with one token. */
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { isToken, type TokenKind } from '../lib/ids.ts'
import { isIdempotencyKey } from '../payment/keys.ts'
import { invalid, type Problem } from './errors.ts'

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i

/** The header that has the owner token where Authorization has the credential of a payment. */
export const OWNER_TOKEN = 'x-owner-token'

/** The owner token of a request outside of Authorization, if it is well formed and of this kind. */
export function ownerTokenOf(request: IncomingMessage, kind: TokenKind): string | null {
  const [token, ...more] = request.headersDistinct[OWNER_TOKEN] ?? []
  if (token === undefined || more.length > 0) return null
  return isToken(kind, token.trim()) ? token.trim() : null
}

/** The bearer token of a request; null for no token, several headers or another scheme. */
export function bearerToken(request: IncomingMessage): string | null {
  // Checked first: building the distinct headers costs more than all other checks of an ingest.
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

// The `Idempotency-Key` header, which names an order.

/** The refusal of a request whose key is missing, repeated or malformed. */
export const invalidKey = (): Problem =>
  invalid('invalid idempotency key', {
    field: 'Idempotency-Key',
    expected: '8 to 128 visible ASCII characters',
  })

/** The one Idempotency-Key of a request, or null when it is missing, repeated or malformed. */
export function idempotencyKey(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['idempotency-key']
  const key = lines?.length === 1 ? lines[0] : undefined
  return key !== undefined && isIdempotencyKey(key) ? key : null
}

/** What stands in `Payment-Preimage`: null without it, and nothing readable in several lines. */
export function preimageIn(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['payment-preimage']
  if (lines === undefined) return null
  return lines.length === 1 ? (lines[0] ?? '').trim() : ''
}
