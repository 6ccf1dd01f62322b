/** IP addresses in their plain spelling, read by ipaddr.js. */
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
