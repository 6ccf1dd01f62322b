/** Any page may call the API: access is by bearer tokens, and there are no cookies to abuse. */
import type { FastifyReply, FastifyRequest } from 'fastify'

const OPEN_TO_ANY_ORIGIN = ['/api/', '/c/', '/w/', '/p/', '/.well-known/']
const EXPOSED =
  'WWW-Authenticate, Payment-Receipt, Gate-Receipt, Retry-After, RateLimit, RateLimit-Policy'
/** What a request of ours may carry; a page that names its headers is granted those. */
const ALLOWED =
  'Authorization, Content-Type, Idempotency-Key, Accept-Payment, Accept-Authenticate, ' +
  'Payment-Preimage, X-Payment-Protocol, X-Whisper-Read-Limit, X-Whisper-Receipt, ' +
  'X-Whisper-Reveal-At, X-Whisper-Reveal-When, X-Gate-Project, X-Gate-Route, X-Gate-Method, X-Gate-Path'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
/** Browsers cap this themselves; a day is what the most patient one keeps. */
const PREFLIGHT_SECONDS = 86_400

/**
 * Lets any origin read the answer, and answers a preflight (Fetch §3.3) itself: it is never
 * stored, limited or charged. True when the answer was sent.
 */
export function answerCors(request: FastifyRequest, reply: FastifyReply): boolean {
  if (!isOpen(request)) return false
  reply.header('access-control-allow-origin', '*')
  if (isPreflight(request)) {
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', allowedHeaders(request))
      .header('access-control-max-age', PREFLIGHT_SECONDS)
      .send()
    return true
  }
  reply.header('access-control-expose-headers', EXPOSED)
  return false
}

function isOpen(request: FastifyRequest): boolean {
  return OPEN_TO_ANY_ORIGIN.some((prefix) => request.originalUrl.startsWith(prefix))
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  )
}

/** A wildcard does not cover Authorization, so the asked-for names are granted by name. */
function allowedHeaders({ headers }: FastifyRequest): string {
  const asked = headers['access-control-request-headers']
  return typeof asked === 'string' && /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}$/.test(asked)
    ? asked
    : ALLOWED
}
