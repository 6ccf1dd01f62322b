/** How the target of a request (RFC 9112 §3.2) is routed. */
import type { IncomingMessage } from 'node:http'
import type { Root } from './api-surface.ts'

/** Removes scheme and host from a target: the request is the same without them (RFC 9112 §3.2.2). */
export function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? ''
  if (target.startsWith('/')) return
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (path !== target) request.url = path.startsWith('/') ? path : `/${path}`
}

/** A path whose first part contains escapes. No route needs them there. */
const ENCODED_ROOT = /^\/[^/?#]*%/
const NOWHERE = '/nowhere'

/**
 * Under roots with raw paths, `/c/{publicId}/anything?query` is routed as `/c/{publicId}`. The original URL
 * stays readable.
 */
export function routedUrl(url: string, rawRoots: readonly Root[]): string {
  // The router decodes `/%63/` to `/c/`, which would bypass all checks of how a path begins.
  if (ENCODED_ROOT.test(url)) return NOWHERE
  const root = rawRoots.find(({ path }) => url.startsWith(path))
  if (!root) return url
  const idAt = root.path.length
  const end = url.slice(idAt).search(/[/?#]/)
  return end === -1 ? url : url.slice(0, idAt + end)
}
