/** IP addresses in their plain spelling, read by ipaddr.js, and the networks around them. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/**
 * The address, or null. ipaddr.js alone would also accept octal, hex and short spellings, which parsers
 * understand differently. An address with a zone, such as `fe80::1%eth0`, has a meaning on one machine only.
 */
export function parseIp(text: string): IpAddress | null {
  return isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text)
}

/**
 * The address, or null. An IPv4 address that is mapped into IPv6 (RFC 4291 §2.5.5.2) comes back as IPv4.
 * ipaddr.js also reads the deprecated spelling without `ffff` as mapped.
 */
export function parseUnmappedIp(text: string): IpAddress | null {
  const address = parseIp(text)
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
    ? address.toIPv4Address()
    : address
}

/** Whether a host, with or without brackets, is this machine: `localhost`, or an address of its own loopback. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || parseUnmappedIp(name)?.range() === 'loopback'
}

/** Whether a Host header, with or without a port, names this machine. */
export const isLoopbackHost = (header = ''): boolean => isLoopback(header.replace(/:\d+$/, ''))

export const isIpv4 = (address: IpAddress): address is ipaddr.IPv4 => address.kind() === 'ipv4'

/** Azure's internal services (agent, DNS, health checks) have this address of the public space. */
const CLOUD_SERVICES = '168.63.129.16'
/** The only routed IPv6 block (RFC 4291 §2.4). ipaddr.js calls the unassigned blocks unicast too. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an IP address belongs to the public internet. ipaddr.js knows the special-purpose blocks (RFC 6890
 * and the IANA registries), such as tunnels and documentation blocks. A text that is not an address, and an
 * address with a zone, are not public either.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseIp(text)
  if (address?.range() !== 'unicast') return false
  return isIpv4(address) ? address.toString() !== CLOUD_SERVICES : address.match(GLOBAL_UNICAST)
}

/** The longest network is `ffff:ffff:ffff::/48`. */
const MAX_NETWORK_CHARS = 24

/**
 * The /24 or /48 of an address in its canonical spelling, or null if the text is not an address. A project's server
 * names a visitor to GATE by it, never by an address.
 */
export function visitorNetwork(text: string): string | null {
  const address = parseUnmappedIp(text)
  if (address === null) return null
  if (isIpv4(address)) return `${address.octets.slice(0, 3).join('.')}.0/24`
  const groups = address.parts.slice(0, 3).map((group) => group.toString(16))
  return `${groups.join(':')}::/48`
}

/** Whether the text is a network as `visitorNetwork` spells it. */
export function isVisitorNetwork(text: string): boolean {
  if (text.length > MAX_NETWORK_CHARS) return false
  const [address = ''] = text.split('/')
  return visitorNetwork(address) === text
}
