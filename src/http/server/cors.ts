/** Any page may call the API: access is by bearer tokens, and there are no cookies to abuse. */
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The headers that a preflight allows. If the page names its headers, it allows those instead. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'Accept-Payment',
  'Accept-Authenticate',
  'Payment-Preimage',
  'X-Payment-Protocol',
  'X-Owner-Token',
]
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
/** A day is the longest time that any browser accepts. */
const PREFLIGHT_SECONDS = 86_400

export function createCors(surfaces: readonly ApiSurface[]) {
  const roots = ['/api/', ...surfaces.flatMap(({ roots }) => roots.map(({ path }) => path))]
  const allowed = [...REQUEST_HEADERS, ...surfaces.flatMap((some) => some.requestHeaders)].join(
    ', ',
  )
  const exposed = [
    'WWW-Authenticate',
    'Payment-Receipt',
    ...surfaces.flatMap((some) => some.responseHeaders),
    'Retry-After',
    'RateLimit',
    'RateLimit-Policy',
    'X-Request-Id',
  ].join(', ')
  /**
   * Lets any origin read the answer. It answers a preflight (Fetch §3.3) itself, so that this is never stored,
   * limited or charged, and returns true then.
   */
  return (request: FastifyRequest, reply: FastifyReply): boolean => {
    if (!roots.some((root) => request.originalUrl.startsWith(root))) return false
    reply.header('access-control-allow-origin', '*')
    if (!isPreflight(request)) {
      reply.header('access-control-expose-headers', exposed)
      return false
    }
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', requestedHeaders(request) ?? allowed)
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

/** The headers that the page names. They are allowed by name: a wildcard does not cover Authorization. */
function requestedHeaders({ headers }: FastifyRequest): string | null {
  const list = headers['access-control-request-headers']
  const isList = typeof list === 'string' && /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}$/.test(list)
  return isList ? list : null
}

// The paths of a product that programs call, besides `/api/`, and its own headers.

export type ApiSurface = {
  roots: readonly Root[]
  /** The request headers that a preflight allows if the page does not name its headers. */
  requestHeaders: readonly string[]
  /** The response headers that a page may read. */
  responseHeaders: readonly string[]
}

/** The first part of a path, such as `/p/`. */
export type Root = {
  path: `/${string}/`
  /** The sender chooses the rest of the path after the id: it is not routed, and stored as sent. */
  hasRawPaths?: true
}
