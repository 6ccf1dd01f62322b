/**
 * Proxies that nobody told us of. Behind one all clients have its address, and a guessable key is
 * then as good from everywhere: the service says what to set, and where strangers reach it, sells
 * nothing until then.
 */
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { App } from './app.ts'
import { isForwarded } from './client-address.ts'

/** Whether a new order is refused, because whose it would be is hidden. */
export type IsClientUnknown = (request: IncomingMessage) => boolean

/** Tells once. To be mounted before the routes. */
export function detectUntrustedProxies(
  app: App,
  { hasTrusted, isLoopback, log }: { hasTrusted: boolean; isLoopback: boolean; log: Logger },
): IsClientUnknown {
  if (hasTrusted) return () => false
  let isTold = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isTold && isForwarded(request.raw)) {
      isTold = true
      const what = { event: 'proxies.unknown', reason: isLoopback ? TOLD : `${TOLD}${UNSOLD}` }
      if (isLoopback) log.warn(what)
      else log.error(what)
    }
    done()
  })
  return (request) => !isLoopback && isForwarded(request)
}

const TOLD =
  'a forwarded request arrived, and no proxy is trusted: set MAYFLY_TRUSTED_PROXIES to the addresses of your proxies'
const UNSOLD = '; until then, forwarded purchases are refused'
