/**
 * Connections through the operator's HTTP proxy (CONNECT, RFC 9110 §9.3.6), so that strangers do not see the
 * address of the service. The proxy is asked for the checked address, not for the name: it would resolve the
 * name anew, perhaps to an address of its own network.
 */
import { request } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { OutboundError } from './error.ts'
import { type Resolve, resolvePublic } from './guarded-lookup.ts'

/** @param proxy an http URL, perhaps with a user and a password. */
export function proxyConnector(
  proxy: URL,
  { resolve, timeoutMs }: { resolve: Resolve; timeoutMs: number },
): buildConnector.connector {
  const secure = buildConnector({ allowH2: false, timeout: timeoutMs })
  return (options, callback) => {
    tunnel(proxy, { ...{ resolve, timeoutMs }, name: options.hostname }).then(
      (httpSocket) => secure({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null),
    )
  }
}

async function tunnel(
  proxy: URL,
  { name, resolve, timeoutMs }: { name: string; resolve: Resolve; timeoutMs: number },
): Promise<Socket> {
  const [first] = await resolvePublic(resolve, name)
  const address = first?.address ?? ''
  const target = `${isIPv6(address) ? `[${address}]` : address}:443`
  return new Promise((resolved, reject) => {
    const asked = request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || 80,
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...authorization(proxy) },
      agent: false,
      timeout: timeoutMs,
    })
    asked.once('connect', (response, socket) => {
      if (response.statusCode === 200) return resolved(socket)
      socket.destroy()
      reject(new OutboundError('unreachable', { code: `PROXY_${response.statusCode}` }))
    })
    // An answer without a tunnel, such as 407 from some proxies.
    asked.once('response', (response) => {
      response.destroy()
      reject(new OutboundError('unreachable', { code: `PROXY_${response.statusCode}` }))
    })
    asked.once('timeout', () => asked.destroy(new OutboundError('too slow')))
    asked.once('error', reject)
    asked.end()
  })
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair, 'utf8').toString('base64')}` }
}
