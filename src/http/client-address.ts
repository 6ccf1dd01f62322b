/** Who is asking: the socket's peer, or what a proxy we trust says of it. */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** A longer chain is somebody's joke; what counts stands at its right end. */
const MAX_HOPS = 32

export type ClientAddress = (request: IncomingMessage) => string

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

/** Whether the peer of this request is one of the trusted proxies. */
export type IsProxied = (request: IncomingMessage) => boolean

/** @param trusted CIDR blocks or addresses. */
export function createClientAddress(trusted: readonly string[]): {
  clientAddress: ClientAddress
  isProxied: IsProxied
} {
  const isTrusted = addressList(trusted)
  const peer = (request: IncomingMessage): string => plain(request.socket.remoteAddress ?? '')
  if (trusted.length === 0) return { clientAddress: peer, isProxied: () => false }
  return {
    isProxied: (request) => isTrusted(peer(request)),
    clientAddress(request) {
      const direct = peer(request)
      if (!isTrusted(direct)) return direct
      const chain = request.headersDistinct['x-forwarded-for']?.join(',').split(',') ?? []
      let client = direct
      // From the right: each hop was written by the one before it, and only trusted ones count.
      for (const hop of chain.slice(-MAX_HOPS).reverse()) {
        const address = plain(hop.trim())
        if (isIP(address) === 0) return client
        client = address
        if (!isTrusted(address)) return client
      }
      return client
    },
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

/** IPv4 that arrived on an IPv6 socket is IPv4; a zone belongs to the machine, not the client. */
function plain(address: string): string {
  if (!address.includes(':')) return address
  const unzoned = address.split('%')[0] ?? ''
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(unzoned)
  return mapped?.[1] ?? unzoned
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
