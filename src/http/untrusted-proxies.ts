/**
 * Detects proxies in front of the service that are not configured. Behind one, all clients have its
 * address, so a guessed key works from everywhere. The log says what to set; unless the service listens on
 * loopback only, forwarded purchases are refused until then.
 */
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { App } from './app.ts'
import { isForwarded } from './client-address.ts'

/** Whether the client's address is unknown, because a proxy that is not trusted forwarded the request. */
export type IsClientUnknown = (request: IncomingMessage) => boolean

/** Logs the first forwarded request. Must be mounted before the routes. */
export function detectUntrustedProxies(
  app: App,
  { hasTrusted, isLoopback, log }: { hasTrusted: boolean; isLoopback: boolean; log: Logger },
): IsClientUnknown {
  if (hasTrusted) return () => false
  let isLogged = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isLogged && isForwarded(request.raw)) {
      isLogged = true
      const entry = {
        event: 'proxies.unknown',
        reason: isLoopback ? ADVICE : `${ADVICE}${REFUSED}`,
      }
      if (isLoopback) log.warn(entry)
      else log.error(entry)
    }
    done()
  })
  return (request) => !isLoopback && isForwarded(request)
}

const ADVICE =
  'a forwarded request arrived, and no proxy is trusted: set MAYFLY_TRUSTED_PROXIES to the addresses of your proxies'
const REFUSED = '; until then, forwarded purchases are refused'
