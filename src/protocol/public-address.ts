/**
 * Whether an IP address belongs to the public internet (IANA special-purpose address registries).
 * Whatever is not plainly public is not: an unreadable text, a tunnel, a documentation block.
 */
export function isPublicAddress(address: string): boolean {
  const ipv4 = ipv4Number(address)
  if (ipv4 !== null) return !NOT_PUBLIC_IPV4.some((block) => isInBlock(ipv4, block))
  const groups = ipv6Groups(address)
  return groups !== null && isPublicIpv6(groups)
}

type Block = readonly [first: string, bits: number]

const NOT_PUBLIC_IPV4: readonly Block[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  // A cloud's own services, at an address of the public space: agent, DNS, health.
  ['168.63.129.16', 32],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

function isInBlock(address: number, [first, bits]: Block): boolean {
  const size = 2 ** (32 - bits)
  return Math.floor(address / size) === Math.floor((ipv4Number(first) ?? 0) / size)
}

/** Of what is routed, 2000::/3, without Teredo and other protocols, documentation and 6to4. */
function isPublicIpv6([first = 0, second = 0]: number[]): boolean {
  if ((first & 0xe000) !== 0x2000) return false
  if (first === 0x2001 && (second < 0x0200 || second === 0x0db8)) return false
  if (first === 0x2002) return false
  return !(first === 0x3fff && second < 0x1000)
}

/** Four decimal numbers without leading zeros: the other spellings mean other things to others. */
export function ipv4Number(text: string): number | null {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1)
  if (!parts || parts.some((part) => Number(part) > 255 || /^0\d/.test(part))) return null
  return parts.reduce((value, part) => value * 256 + Number(part), 0)
}

/** The eight groups (RFC 4291 §2.2), or null. A zone, as of `fe80::1%eth0`, is none of ours. */
export function ipv6Groups(text: string): number[] | null {
  if (text.length > 45 || !/^[0-9a-fA-F:.]+$/.test(text)) return null
  const halves = text.split('::')
  if (halves.length > 2) return null
  const [head, tail] = halves.map(groupsOf)
  if (!head || (halves.length === 2 && !tail)) return null
  if (!tail) return head.length === 8 ? head : null
  const missing = 8 - head.length - tail.length
  return missing >= 1 ? [...head, ...new Array<number>(missing).fill(0), ...tail] : null
}

function groupsOf(text: string): number[] | null {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [i, part] of parts.entries()) {
    const ipv4 = i === parts.length - 1 ? ipv4Number(part) : null
    if (ipv4 !== null) groups.push(Math.floor(ipv4 / 65_536), ipv4 % 65_536)
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return null
  }
  return groups
}
