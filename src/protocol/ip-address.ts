/** IP addresses in their plain spelling, read by ipaddr.js. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/**
 * The address, or null. ipaddr.js alone would also take the octal, hex and short spellings that two
 * readers understand differently; an address with a zone, as in `fe80::1%eth0`, means something on
 * one machine alone.
 */
export function parseIp(text: string): IpAddress | null {
  return isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text)
}

/**
 * The same, with the IPv4 address of one that is mapped into IPv6 (RFC 4291 §2.5.5.2). ipaddr.js reads
 * the deprecated spelling without `ffff` as mapped, too.
 */
export function parseUnmappedIp(text: string): IpAddress | null {
  const address = parseIp(text)
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
    ? address.toIPv4Address()
    : address
}

export const isIpv4 = (address: IpAddress): address is ipaddr.IPv4 => address.kind() === 'ipv4'
