/** Which URLs the operator lets the service call. */
import { type AllowedHosts, readPublicUrl } from '../protocol/public-url.ts'
import { OutboundError } from './error.ts'

/** What the operator decides of every way out. */
export type OutboundRules = {
  /** `host:port` of servers that need not be public, and are reached without the proxy. */
  allowed: AllowedHosts
  /** Names that are not called, nor are those below them. */
  blocked?: ReadonlySet<string>
  /** An http proxy for everything but `allowed`. */
  proxy?: URL | null
  /** Whether a URL leads to this service itself. */
  isOurselves?: (url: URL) => boolean
}

/** @throws OutboundError for a URL that the service never calls, whatever its name resolves to. */
export function requireCallable(
  url: URL,
  { allowed, blocked = new Set(), isOurselves = () => false }: OutboundRules,
): void {
  if ('fault' in readPublicUrl(url.href, allowed)) throw new OutboundError('not public')
  if (isOurselves(url)) throw new OutboundError('ourselves')
  const labels = url.hostname.split('.')
  if (labels.some((_, i) => blocked.has(labels.slice(i).join('.')))) {
    throw new OutboundError('blocked')
  }
}
