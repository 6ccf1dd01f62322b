/**
 * Whether an IP address belongs to the public internet: ipaddr.js knows the special-purpose blocks
 * (RFC 6890 and the IANA registries). Anything else is not public: an unreadable text, a tunnel, a
 * documentation block, an address with a zone.
 */
import ipaddr from 'ipaddr.js'
import { isIpv4, parseIp } from './ip-address.ts'

/** A cloud's own services, at an address of the public space: agent, DNS, health. */
const CLOUD_SERVICES = '168.63.129.16'
/** All that is routed on the public internet (RFC 4291 §2.4). ipaddr.js counts the rest as unicast. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

export function isPublicAddress(text: string): boolean {
  const address = parseIp(text)
  if (address?.range() !== 'unicast') return false
  return isIpv4(address) ? address.toString() !== CLOUD_SERVICES : address.match(GLOBAL_UNICAST)
}
