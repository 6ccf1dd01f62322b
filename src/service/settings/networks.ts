/** The settings that name networks. An error's message completes "<name> must be …". */
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'

/** More than any list of bad networks has, and few megabytes in memory. */
const MAX_NETWORKS = 100_000

const LIST = 'a comma-separated list of addresses or CIDR blocks'

/** The widest blocks that are trusted: the private network of a cloud, and the local addresses of IPv6. */
const WIDEST_BITS = { ipv4: 8, ipv6: 7 }

/** Proxies, comma-separated. A list that trusts everybody would let each client choose its address. */
export function proxyList(value: string): string[] {
  const blocks = partsOf(value)
  if (!blocks.every(isNetwork)) throw new Error(LIST)
  const wide = blocks.find(isTooWide)
  if (wide === undefined) return blocks
  throw new Error(
    `the addresses of your proxies alone: ${wide} has strangers in it, who could then say any address is theirs (at least /${WIDEST_BITS.ipv4}, of IPv6 /${WIDEST_BITS.ipv6})`,
  )
}

function isTooWide(block: string): boolean {
  const [address = '', bits] = block.split('/')
  if (bits === undefined) return false
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family)
  // A block of IPv6 can have the addresses of IPv4 in it, as ::ffff:0:0/96 does.
  const hasIpv4 = list.check('1.0.0.1', 'ipv4') && list.check('203.0.113.1', 'ipv4')
  return hasIpv4 || Number(bits) < WIDEST_BITS[family]
}

/** The same, or the name of a file with one in each line. In a line, nothing after a `#` counts. */
export function cidrListOrFile(value: string): string[] {
  const listed = partsOf(value)
  if (listed.every(isNetwork)) return listed
  let text: string
  try {
    text = readFileSync(value, 'utf8')
  } catch {
    throw new Error(`${LIST}, or a readable file with one in each line`)
  }
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim())
  const wrong = lines.findIndex((line) => line !== '' && !isNetwork(line))
  if (wrong !== -1) {
    throw new Error(`a file with an address or CIDR block in each line; line ${wrong + 1} is none`)
  }
  const blocks = lines.filter((line) => line !== '')
  if (blocks.length > MAX_NETWORKS) throw new Error(`a file with at most ${MAX_NETWORKS} networks`)
  return blocks
}

const partsOf = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

function isNetwork(block: string): boolean {
  const [address = '', bits, ...rest] = block.split('/')
  const family = isIP(address)
  const maxBits = family === 6 ? 128 : 32
  const isBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= maxBits)
  // A zone belongs to one machine.
  return family !== 0 && !address.includes('%') && isBits && rest.length === 0
}
