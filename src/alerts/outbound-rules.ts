/** Which servers the operator lets the service call for strangers, and why a call gave no answer. */
import { type AllowedHosts, readPublicUrl } from '../protocol/public-url.ts'

export type OutboundReason =
  /** The URL or the address behind its name is one that is never called. */
  | 'not public'
  | 'ourselves'
  | 'blocked'
  /** The name has no address. */
  | 'nowhere'
  | 'unreachable'
  | 'too slow'
  | 'too large'
  /** Too many calls wait for this server. */
  | 'too busy'

/** The server gave no usable answer. Quotes nothing that it sent. */
export class OutboundError extends Error {
  override name = 'OutboundError'
  readonly reason: OutboundReason
  /** The system's code of a failed connection, such as `ECONNREFUSED`, or an empty text. */
  readonly code: string
  /** The status of the answer, if only its body could not be used. */
  readonly status: number | null

  constructor(
    reason: OutboundReason,
    {
      code = '',
      status = null,
      cause,
    }: { code?: string; status?: number | null; cause?: unknown } = {},
  ) {
    super(`no usable answer: ${reason}${code === '' ? '' : ` (${code})`}`, { cause })
    this.reason = reason
    this.code = code
    this.status = status
  }
}

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

/**
 * Whether a URL leads to the service with this address. A public name is ours on every port. Requests of the service
 * to itself would pass its own limits as those of a stranger, and could go in circles.
 */
export function leadsTo(publicUrl: () => string): (url: URL) => boolean {
  return (url) => {
    const own = URL.parse(publicUrl())
    if (own === null) return false
    return url.host === own.host || (url.port === '' && url.hostname === own.hostname)
  }
}
