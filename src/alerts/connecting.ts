/**
 * Connections to names that strangers choose. A name is resolved apart from all other names of the service, its
 * addresses are checked, and the socket connects to one of those: a DNS answer that changes afterwards
 * (rebinding) has no effect.
 */
import dns, { type LookupAddress } from 'node:dns'
import { request } from 'node:http'
import { isIPv6, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { codeOf } from '../lib/errors.ts'
import { isPublicAddress } from '../protocol/ip-address.ts'
import { OutboundError } from './outbound-rules.ts'

/** UDP loses messages, so a second one is sent after this time. */
const FIRST_TRY_MS = 800

/** All addresses of a name, until the signal ends the look-up. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<LookupAddress[]>

/**
 * Asks the name servers of the system over sockets of its own. `dns.lookup` would hold one of libuv's four threads for
 * as long as a stranger's name server is silent, and with it the names of the node and the store, and all files.
 */
export const askNameServers: Resolve = async (hostname, signal) => {
  const resolver = new dns.promises.Resolver({ timeout: FIRST_TRY_MS, tries: 2 })
  resolver.setServers(dns.getServers())
  signal.addEventListener('abort', () => resolver.cancel(), { once: true })
  const [v4, v6] = await Promise.allSettled([
    resolver.resolve4(hostname),
    resolver.resolve6(hostname),
  ])
  const addresses = [...familyOf(v4, 4), ...familyOf(v6, 6)]
  // A server that is silent about one family may have told all that there is of the other.
  if (addresses.length === 0 && v4.status === 'rejected') throw v4.reason
  return addresses
}

const familyOf = (answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] =>
  answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : []

/** The addresses of a name: at least one, and all of them public. @throws OutboundError */
export async function publicAddresses(
  hostname: string,
  resolve: (hostname: string) => Promise<LookupAddress[]>,
): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname).catch((cause: unknown) => {
    throw new OutboundError(reasonOf(codeOf(cause)), { code: codeOf(cause), cause })
  })
  if (addresses.length === 0) throw new OutboundError('nowhere')
  // A private address among public ones is a sign of an attack, so the whole name is refused.
  if (!addresses.every(({ address }) => isPublicAddress(address))) {
    throw new OutboundError('not public')
  }
  return addresses
}

/** The codes of c-ares. */
function reasonOf(code: string): OutboundError['reason'] {
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'nowhere'
  return code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'too slow' : 'unreachable'
}

/** The checked addresses of a name. @throws OutboundError if it was not checked. */
export type Checked = (hostname: string) => LookupAddress[]

/** A `lookup` for sockets that knows only checked addresses. */
export function checkedLookup(checked: Checked): LookupFunction {
  return (hostname, options, callback) => {
    const known = async (): Promise<LookupAddress[]> => checked(hostname)
    known().then(
      (addresses) => {
        const [first] = addresses
        if (options.all) callback(null, addresses)
        else if (first) callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    )
  }
}

/**
 * Connects through the operator's HTTP proxy (CONNECT, RFC 9110 §9.3.6), so that strangers do not see the address of
 * the service. The proxy is asked for the checked address, not for the name: it would resolve the name anew,
 * perhaps to an address of its own network.
 * @param proxy an http URL, perhaps with a user and a password.
 */
export function proxyConnector(
  proxy: URL,
  { checked, timeoutMs }: { checked: Checked; timeoutMs: number },
): buildConnector.connector {
  const secure = buildConnector({ allowH2: false, timeout: timeoutMs })
  return (options, callback) => {
    tunnel(proxy, { checked, timeoutMs, name: options.hostname }).then(
      (httpSocket) => secure({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null),
    )
  }
}

async function tunnel(
  proxy: URL,
  { name, checked, timeoutMs }: { name: string; checked: Checked; timeoutMs: number },
): Promise<Socket> {
  const [first] = checked(name)
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
