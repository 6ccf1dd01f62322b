/** Who is asking: the socket's peer, or what a proxy we trust says of it. */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** A longer chain is somebody's joke; what counts stands at its right end. */
const MAX_HOPS = 32

export type ClientAddress = (request: IncomingMessage) => string

/**
 * The address block of one client (/32 of IPv4, /64 of IPv6), or null where nobody can say that it
 * is this client's own. Who opened an order is told by it.
 */
export type ExactClient = (request: IncomingMessage) => string | null

/** The forwarding headers that a proxy adds. From a trusted one they are no part of the message. */
export const FORWARDING_HEADERS: ReadonlySet<string> = new Set([
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
])

/** The headers in which a proxy names its client; some write one alone, and not the standard one. */
const CLIENT_HEADERS = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'x-client-ip',
]

/** Whether the peer of this request is one of the trusted proxies. */
export type IsProxied = (request: IncomingMessage) => boolean

/** Whether a proxy of any kind says in this request who its client is. */
export function isForwarded({ headers }: IncomingMessage): boolean {
  return CLIENT_HEADERS.some((name) => headers[name] !== undefined)
}

/**
 * @param trusted CIDR blocks or addresses.
 * @param isBehindTls whether clients speak TLS, which something in front ends: no peer is a client.
 */
export function createClientAddress(
  trusted: readonly string[],
  isBehindTls = false,
): {
  clientAddress: ClientAddress
  exactClient: ExactClient
  isProxied: IsProxied
} {
  const isTrusted = addressList(trusted)
  const peer = (request: IncomingMessage): string => plain(request.socket.remoteAddress ?? '')

  /** The client, and whether it is the last hop that anybody speaks of. */
  function proxied(request: IncomingMessage): { client: string; isLast: boolean } {
    const direct = peer(request)
    if (!isTrusted(direct)) return { client: direct, isLast: !isForwarded(request) }
    const chain = request.headersDistinct['x-forwarded-for']?.join(',').split(',') ?? []
    let client = direct
    // From the right: each hop was written by the one before it, and only trusted ones count.
    for (const [i, hop] of chain.slice(-MAX_HOPS).reverse().entries()) {
      const address = plain(hop.trim())
      if (isIP(address) === 0) break
      client = address
      if (!isTrusted(address)) return { client, isLast: i === chain.length - 1 }
    }
    // Proxies of ours alone are named: whose request it is was not said.
    return { client, isLast: false }
  }

  /** What forwards for others is nobody's own address, be it a proxy that we do not know. */
  function exactClient(request: IncomingMessage): string | null {
    if (trusted.length === 0 && isBehindTls) return null
    const { client, isLast } = proxied(request)
    return isLast ? clientScope(client) : null
  }

  return {
    clientAddress: trusted.length === 0 ? peer : (request) => proxied(request).client,
    exactClient,
    isProxied: trusted.length === 0 ? () => false : (request) => isTrusted(peer(request)),
  }
}

/** An address block that one client can be assumed to hold: the address itself, or its /64. */
export function clientScope(address: string): string {
  return isIP(address) === 6 ? groups(address).slice(0, 4).join(':') : address
}

/** A network that shares limits: /24 of IPv4, /48 of IPv6. */
export function clientNetwork(address: string): string {
  return isIP(address) === 6
    ? groups(address).slice(0, 3).join(':')
    : address.split('.').slice(0, 3).join('.')
}

/** The network around such a network: /16 of IPv4, /32 of IPv6. */
export function widerNetwork(network: string): string {
  const separator = network.includes(':') ? ':' : '.'
  return network.split(separator).slice(0, 2).join(separator)
}

/** @throws Error for an entry that is no address or CIDR block. */
export function addressList(blocks: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const block of blocks) {
    const [address = '', bits] = block.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return (address) => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/**
 * IPv4 that arrived on an IPv6 socket is IPv4, also through a translator (RFC 6052 §2.1), where all of
 * it would else be one /64; a zone belongs to the machine, not the client.
 */
function plain(address: string): string {
  if (!address.includes(':')) return address
  const unzoned = address.split('%')[0] ?? ''
  const embedded = /^(?:::ffff|64:ff9b:):(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(unzoned)
  if (embedded?.[1]) return embedded[1]
  if (!/^0{0,2}64:ff9b:/i.test(unzoned) || isIP(unzoned) !== 6) return unzoned
  const [, , a, b, c, d, high = '', low = ''] = groups(unzoned)
  if ([a, b, c, d].some((group) => group !== '0')) return unzoned
  const bytes = [high, low].flatMap((group) => {
    const number = Number.parseInt(group, 16)
    return [number >> 8, number & 0xff]
  })
  return bytes.join('.')
}

/** The eight groups of an IPv6 address, without leading zeros. */
function groups(address: string): string[] {
  const [head = '', tail] = address.toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = Math.max(0, 8 - left.length - right.length)
  const filled = tail === undefined ? [] : Array.from({ length: missing }, () => '0')
  return [...left, ...filled, ...right].map((group) => group.replace(/^0+(?=.)/, ''))
}
