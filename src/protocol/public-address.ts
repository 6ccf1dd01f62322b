/**
 * Whether an IP address belongs to the public internet. ipaddr.js knows the special-purpose blocks (RFC 6890
 * and the IANA registries), such as tunnels and documentation blocks. A text that is not an address, and an
 * address with a zone, are not public either.
 */
import ipaddr from 'ipaddr.js'
import { isIpv4, parseIp } from './ip-address.ts'

/** Azure's internal services (agent, DNS, health checks) have this address of the public space. */
const CLOUD_SERVICES = '168.63.129.16'
/** The only routed IPv6 block (RFC 4291 §2.4). ipaddr.js calls the unassigned blocks unicast too. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

export function isPublicAddress(text: string): boolean {
  const address = parseIp(text)
  if (address?.range() !== 'unicast') return false
  return isIpv4(address) ? address.toString() !== CLOUD_SERVICES : address.match(GLOBAL_UNICAST)
}
