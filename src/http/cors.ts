/** Any page may call the API: access is by bearer tokens, and there are no cookies to abuse. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiSurface } from './api-surface.ts'

/** What requests may carry; a page that names its headers is granted those. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'Accept-Payment',
  'Accept-Authenticate',
  'Payment-Preimage',
  'X-Payment-Protocol',
]
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
/** Browsers cap this themselves; a day is what the most patient one keeps. */
const PREFLIGHT_SECONDS = 86_400

/**
 * Lets any origin read the answer, and answers a preflight (Fetch §3.3) itself: it is never
 * stored, limited or charged. True when the answer was sent.
 */
export type AnswerCors = (request: FastifyRequest, reply: FastifyReply) => boolean

export function createCors(surfaces: readonly ApiSurface[]): AnswerCors {
  const roots = ['/api/', ...surfaces.flatMap(({ roots }) => roots.map(({ path }) => path))]
  const allowed = [...REQUEST_HEADERS, ...surfaces.flatMap((some) => some.requestHeaders)].join(
    ', ',
  )
  const exposed = [
    ...['WWW-Authenticate', 'Payment-Receipt'],
    ...surfaces.flatMap((some) => some.responseHeaders),
    ...['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  ].join(', ')
  return (request, reply) => {
    if (!roots.some((root) => request.originalUrl.startsWith(root))) return false
    reply.header('access-control-allow-origin', '*')
    if (!isPreflight(request)) {
      reply.header('access-control-expose-headers', exposed)
      return false
    }
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', headersAskedFor(request) ?? allowed)
      .header('access-control-max-age', PREFLIGHT_SECONDS)
      .send()
    return true
  }
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  )
}

/** A wildcard does not cover Authorization, so the asked-for names are granted by name. */
function headersAskedFor({ headers }: FastifyRequest): string | null {
  const asked = headers['access-control-request-headers']
  const isList = typeof asked === 'string' && /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}$/.test(asked)
  return isList ? asked : null
}
