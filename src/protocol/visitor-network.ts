/** A project's server names a visitor to GATE by a network, never by an address. */
import { isIpv4, parseUnmappedIp } from './ip-address.ts'

/** The longest network is `ffff:ffff:ffff::/48`. */
const MAX_NETWORK_CHARS = 24

/** The /24 or /48 of an address in its canonical spelling, or null if the text is not an address. */
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
