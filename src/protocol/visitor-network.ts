/** How a project's server tells GATE whose visit it is: by a network, and never by an address. */
import { ipv4Number, ipv6Groups } from './public-address.ts'

/** The longest network, `ffff:ffff:ffff::/48`, and a little. */
const MAX_NETWORK_CHARS = 24

/** The /24 or /48 of an address in its one spelling, or null where it is no address. */
export function visitorNetwork(address: string): string | null {
  const ipv4 = ipv4Number(address)
  if (ipv4 !== null) return ipv4Network(ipv4)
  const groups = ipv6Groups(address)
  if (groups === null) return null
  const [first = 0, second = 0, third = 0, , , mark = 0, high = 0, low = 0] = groups
  // An IPv4 client on an IPv6 socket (RFC 4291 §2.5.5.2).
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && mark === 0xffff
  if (isMapped) return ipv4Network(high * 65_536 + low)
  return `${[first, second, third].map((group) => group.toString(16)).join(':')}::/48`
}

/** Whether this is what `visitorNetwork` says of some address. */
export function isVisitorNetwork(text: string): boolean {
  if (text.length > MAX_NETWORK_CHARS) return false
  const [address = ''] = text.split('/')
  return visitorNetwork(address) === text
}

const ipv4Network = (address: number): string =>
  `${[24, 16, 8].map((shift) => (address >>> shift) & 255).join('.')}.0/24`
