/** How a request is framed, and how its target is routed (RFC 9112). */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Fault } from '../../protocol/errors.ts'
import type { Root } from './cors.ts'

/** Removes scheme and host from a target: the request is the same without them (RFC 9112 §3.2.2). */
export function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? ''
  if (target.startsWith('/')) return
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (path !== target) request.url = path.startsWith('/') ? path : `/${path}`
}

/** A path whose first part has no escapes. No route needs them there. */
const PLAIN_ROOT = /^\/[^/?#%]*(?:[/?#]|$)/
const NOWHERE = '/nowhere'

/**
 * Under roots with raw paths, `/c/{publicId}/anything?query` is routed as `/c/{publicId}`. The original URL
 * stays readable.
 */
export function routedUrl(url: string, rawRoots: readonly Root[]): string {
  // The router decodes `/%63/` to `/c/`, which would bypass all checks of how a path begins.
  if (!PLAIN_ROOT.test(url)) return NOWHERE
  const root = rawRoots.find(({ path }) => url.startsWith(path))
  return readable(root ? upToId(url, root) : url)
}

function upToId(url: string, { path }: Root): string {
  const end = url.slice(path.length).search(/[/?#]/)
  return end === -1 ? url : url.slice(0, path.length + end)
}

/** Escapes that stand for no text become plain signs: an id with one is looked up, and is one that nobody has. */
function readable(url: string): string {
  if (!url.includes('%')) return url
  const [path = ''] = url.split(/[?#]/)
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length)
  }
}

/** uri-host and port (RFC 9110 §7.2). It is empty for a target without an authority. */
const HOST = /^(?:\[[0-9a-fv:][^\][\s/@]*\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i

/** The header that leaves unclear what the request asks for (RFC 9112 §3.2) or where it ends (§6.1), or null. */
export function faultOfFraming({
  httpVersion,
  rawHeaders,
  headers,
}: IncomingMessage): Fault | null {
  if (httpVersion === '1.1') {
    if (linesOf('host', rawHeaders) !== 1) return { field: 'Host', expected: 'one line' }
    if (!HOST.test(headers.host ?? '')) {
      return { field: 'Host', expected: 'a name or an address, with a port if it has one' }
    }
  }
  const coding = headers['transfer-encoding']
  // The parser takes any list that ends in `chunked`, and what is in it would be stored as it is.
  if (coding?.includes(',')) {
    return { field: 'Transfer-Encoding', expected: 'chunked' }
  }
  return null
}

/** How many lines a header has. Node's parsed headers have only the first of those that must not be repeated. */
export function linesOf(header: string, rawHeaders: string[]): number {
  let lines = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (name.length === header.length && name.toLowerCase() === header) lines++
  }
  return lines
}

// The methods that the routes of a path accept.

/** Collects the methods as routes are mounted, for `Allow` and for 405. */
export function collectMethods(app: FastifyInstance): (url: string) => string[] {
  const routes = new Map<string, Set<string>>()
  /** Made for the first path that no route has: most services see few of them, and all have many routes. */
  let patterns: { pattern: RegExp; methods: Set<string> }[] | null = null
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.isRefused) return
    const methods = routes.get(url) ?? new Set<string>()
    for (const name of [method].flat()) methods.add(name)
    routes.set(url, methods)
  })
  return (url) => {
    const path = url.split('?')[0] ?? ''
    const exact = routes.get(path)
    // A path that is written out is no value of another route's pattern.
    if (exact) return [...exact].sort()
    patterns ??= [...routes].map(([url, methods]) => ({ pattern: patternOf(url), methods }))
    const fitting = patterns.filter(({ pattern }) => pattern.test(path))
    return [...new Set(fitting.flatMap(({ methods }) => [...methods]))].sort()
  }
}

function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.]/g, '\\.').replaceAll(/:\w+/g, '[^/]+')
  return new RegExp(`^${escaped.replace(/\*$/, '.*')}$`)
}
