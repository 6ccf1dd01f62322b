/**
 * Detects proxies in front of the service that are not configured. Behind one, all clients have its address, so a
 * guessed key would work from everywhere: no native quote is opened there, and the log says what to set.
 */
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { App } from './app.ts'

/** Logs the first forwarded request. Must be mounted before the routes. */
export function detectUntrustedProxies(
  app: App,
  {
    isBehindUntrusted,
    log,
  }: { isBehindUntrusted: (request: IncomingMessage) => boolean; log: Logger },
): void {
  let isLogged = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isLogged && isBehindUntrusted(request.raw)) {
      isLogged = true
      log.error({ event: 'proxies.unknown', reason: ADVICE })
    }
    done()
  })
}

const ADVICE =
  'a forwarded request arrived from a proxy that is not trusted: set MAYFLY_TRUSTED_PROXIES to the addresses of your proxies; until then, no native quote is opened for what they forward'
