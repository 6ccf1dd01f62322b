/** The target of a request (RFC 9112 §3.2), as it is routed. */
import type { IncomingMessage } from 'node:http'
import type { Root } from './api-surface.ts'

/** A target with scheme and host is the same request as one without (RFC 9112 §3.2.2). */
export function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? ''
  if (target.startsWith('/')) return
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (path !== target) request.url = path.startsWith('/') ? path : `/${path}`
}

/** A path whose first part is spelled with escapes. Nothing of ours needs any there. */
const ENCODED_ROOT = /^\/[^/?#]*%/
const NOWHERE = '/nowhere'

/**
 * Where paths are raw, `/c/{publicId}/anything?query` is routed as `/c/{publicId}`; the URL as sent
 * stays readable.
 */
export function routedUrl(url: string, rawRoots: readonly Root[]): string {
  // The router would take `/%63/` for `/c/`, past all that goes by how a path begins.
  if (ENCODED_ROOT.test(url)) return NOWHERE
  const root = rawRoots.find(({ path }) => url.startsWith(path))
  if (!root) return url
  const idAt = root.path.length
  const end = url.slice(idAt).search(/[/?#]/)
  return end === -1 ? url : url.slice(0, idAt + end)
}
