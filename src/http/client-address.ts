/**
 * The client's address: the socket's peer, or the address that a trusted proxy names. proxy-addr is not used,
 * because it skips empty hops and returns malformed ones; here the last valid hop counts.
 */

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'
import {
  type IpAddress,
  isIpv4,
  isLoopback,
  parseIp,
  parseUnmappedIp,
} from '../protocol/ip-address.ts'

/** Real chains are shorter. The hops that count are at the right end. */
const MAX_HOPS = 32

export type ClientAddress = (request: IncomingMessage) => string

/**
 * The client that an order remembers: the right-most address that is no trusted proxy, as a block (/32 of IPv4, /64 of
 * IPv6). Null behind a proxy that is not trusted, and for what a trusted one has forwarded without a name.
 */
export type OpeningClient = (request: IncomingMessage) => string | null

/** The forwarding headers that a proxy adds. Those of a trusted proxy are not part of the message. */
export const FORWARDING_HEADERS: ReadonlySet<string> = new Set([
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
])

/** The headers in which a proxy names its client; some proxies write only one of them. */
const CLIENT_HEADERS = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'x-client-ip',
]

/** All headers by which a request shows that a proxy sent it on. */
export const PROXY_HEADERS = [...new Set([...CLIENT_HEADERS, ...FORWARDING_HEADERS])]

/** Whether the peer of this request is one of the trusted proxies. */
export type IsProxied = (request: IncomingMessage) => boolean

/** Whether any proxy, trusted or not, names its client in this request. */
function isForwarded({ headers }: IncomingMessage): boolean {
  return CLIENT_HEADERS.some((name) => headers[name] !== undefined)
}

/**
 * @param trusted CIDR blocks or addresses.
 * @param isBehindTls whether a proxy in front terminates TLS: then the peer is never the client itself.
 */
export function createClientAddress(trusted: readonly string[], isBehindTls = false) {
  const isTrusted = networkList(trusted)
  const peer = (request: IncomingMessage): string => plain(request.socket.remoteAddress ?? '')

  /** The client that the trusted proxies name, or null. */
  function named(request: IncomingMessage): string | null {
    const chain = request.headersDistinct['x-forwarded-for']?.join(',').split(',') ?? []
    let client: string | null = null
    // From the right: each proxy appends the address of its peer, and only trusted proxies are believed.
    for (const hop of chain.slice(-MAX_HOPS).reverse()) {
      const address = plain(hop.trim())
      if (isIP(address) === 0) break
      client = address
      if (!isTrusted(address)) break
    }
    return client
  }

  function clientAddress(request: IncomingMessage): string {
    const direct = peer(request)
    return (isTrusted(direct) ? named(request) : null) ?? direct
  }

  /** A trusted peer that forwards for nobody is a client of its own, such as a program on the proxy's machine. */
  const isBehindSilent = (request: IncomingMessage): boolean =>
    isForwarded(request) && isTrusted(peer(request)) && named(request) === null

  /** Whether a proxy that is not trusted has forwarded the request, as its headers or the public address say. */
  const isBehindUntrusted = (request: IncomingMessage): boolean =>
    (isForwarded(request) || (isBehindTls && trusted.length === 0)) && !isTrusted(peer(request))
  const openingClient: OpeningClient = (request) =>
    isBehindUntrusted(request) || isBehindSilent(request)
      ? null
      : clientScope(clientAddress(request))
  const isProxied: IsProxied =
    trusted.length === 0 ? () => false : (request) => isTrusted(peer(request))

  return {
    clientAddress: trusted.length === 0 ? peer : clientAddress,
    openingClient,
    isBehindUntrusted,
    isProxied,
    /** The network of a peer; null for a trusted proxy, and for this machine. */
    peerNetwork(text: string): string | null {
      const address = plain(text)
      return isTrusted(address) || isLoopback(address) ? null : clientNetwork(address)
    },
  }
}

/** An address block that one client can be assumed to hold: the address itself, or its /64. */
export function clientScope(address: string): string {
  return firstGroups(address, 4) ?? address
}

/** A network that shares limits: /24 of IPv4, /48 of IPv6. */
export function clientNetwork(address: string): string {
  return firstGroups(address, 3) ?? address.split('.').slice(0, 3).join('.')
}

/** The wide network around a client network: /16 of IPv4, /32 of IPv6. */
export function widerNetwork(network: string): string {
  const separator = network.includes(':') ? ':' : '.'
  return network.split(separator).slice(0, 2).join(separator)
}

/** The network that has the most; all networks within a wide one count together, since one client may have many. */
export function largestNetwork(held: Iterable<readonly [network: string, amount: number]>): string {
  const wide = new Map<string, { amount: number; largest: string; most: number }>()
  for (const [network, amount] of held) {
    const name = widerNetwork(network)
    const around = wide.get(name) ?? { amount: 0, largest: network, most: -1 }
    wide.set(name, around)
    around.amount += amount
    if (amount > around.most) Object.assign(around, { largest: network, most: amount })
  }
  let found = { amount: -1, largest: '' }
  for (const around of wide.values()) if (around.amount > found.amount) found = around
  return found.largest
}

/** The well-known prefix of NAT64 translators (RFC 6052 §2.1). */
const TRANSLATED = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/**
 * An IPv4 address that arrives on an IPv6 socket counts as IPv4, even through a NAT64 translator: otherwise
 * all its clients would share one /64. A zone is removed, because it belongs to this machine.
 */
function plain(text: string): string {
  if (!text.includes(':')) return text
  const [unzoned = ''] = text.split('%')
  const address = parseUnmappedIp(unzoned)
  if (address === null) return unzoned
  if (isIpv4(address)) return address.toString()
  if (!address.match(TRANSLATED)) return unzoned
  return new ipaddr.IPv4(address.toByteArray().slice(12)).toString()
}

/** The first groups of an IPv6 address, in hex; null for any other text. */
function firstGroups(text: string, count: number): string | null {
  const address = text.includes(':') ? parseIp(text) : null
  if (address === null || isIpv4(address)) return null
  const groups = address.parts.slice(0, count)
  return groups.map((group) => group.toString(16)).join(':')
}

/**
 * Whether an address is in one of these networks. A look-up costs one step for each length of a prefix, however many
 * networks there are; Node's own list looks at each of them.
 * @param blocks addresses and CIDR blocks, which were checked before.
 */
export function networkList(blocks: readonly string[]): (address: string) => boolean {
  const prefixes = { 4: new Map<bigint, Set<bigint>>(), 6: new Map<bigint, Set<bigint>>() }
  for (const block of blocks) {
    const [text = '', length] = block.split('/')
    // A network of mapped addresses is one of IPv4, as each client's own address is.
    const address = parseUnmappedIp(text)
    if (address === null) throw new Error('a network is neither an address nor a CIDR block')
    const { family, value } = numberOf(address)
    const bits = text.includes(':') ? 128 : 32
    const rest = BigInt(bits - Number(length ?? bits))
    const known = prefixes[family].get(rest) ?? new Set()
    prefixes[family].set(rest, known.add(value >> rest))
  }
  return (text) => {
    const address = parseIp(text)
    if (address === null) return false
    const { family, value } = numberOf(address)
    for (const [rest, known] of prefixes[family]) if (known.has(value >> rest)) return true
    return false
  }
}

function numberOf(address: IpAddress): { family: 4 | 6; value: bigint } {
  let value = 0n
  for (const byte of address.toByteArray()) value = (value << 8n) | BigInt(byte)
  return { family: isIpv4(address) ? 4 : 6, value }
}

// Detects proxies in front of the service that are not configured, or do not name the client. Behind one, all clients have
// its address, so a guessed key would work from everywhere: no native quote is opened there, and the log says what to set.

/**
 * Logs the first request that a proxy that is not trusted has forwarded, or the first purchase of an unknown client. Must
 * be mounted before the routes. @returns the opening client of a request, with that log.
 */
export function detectUnknownClients(
  app: FastifyInstance,
  {
    isBehindUntrusted,
    openingClient,
    log,
  }: {
    isBehindUntrusted: (request: IncomingMessage) => boolean
    openingClient: OpeningClient
    log: Logger
  },
): OpeningClient {
  let isLogged = false
  function tell(): void {
    if (!isLogged) log.error({ event: 'proxies.unknown', reason: ADVICE })
    isLogged = true
  }
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isLogged && isBehindUntrusted(request.raw)) tell()
    done()
  })
  return (request) => {
    const client = openingClient(request)
    if (client === null) tell()
    return client
  }
}

const ADVICE =
  'a request arrived whose client is unknown: set MAYFLY_TRUSTED_PROXIES to the addresses of your proxies, and let them name the client in X-Forwarded-For; until then, no native quote is opened for what they forward'
