/** The settings that name networks. An error's message completes "<name> must be …". */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'

/** More than any list of bad networks has, and few megabytes in memory. */
const MAX_NETWORKS = 100_000

const LIST = 'a comma-separated list of addresses or CIDR blocks'

/** Addresses and CIDR blocks, comma-separated. */
export function cidrList(value: string): string[] {
  const blocks = partsOf(value, ',')
  if (!blocks.every(isNetwork)) throw new Error(LIST)
  return blocks
}

/** The same, or the name of a file with one in each line. In a line, nothing after a `#` counts. */
export function cidrListOrFile(value: string): string[] {
  const listed = partsOf(value, ',')
  if (listed.every(isNetwork)) return listed
  let text: string
  try {
    text = readFileSync(value, 'utf8')
  } catch {
    throw new Error(`${LIST}, or a readable file with one in each line`)
  }
  const blocks = partsOf(text.replaceAll(/#.*/g, ''), '\n')
  const wrong = blocks.findIndex((block) => !isNetwork(block))
  if (wrong !== -1) {
    throw new Error(
      `a file with an address or CIDR block in each line; number ${wrong + 1} is none`,
    )
  }
  if (blocks.length > MAX_NETWORKS) throw new Error(`a file with at most ${MAX_NETWORKS} networks`)
  return blocks
}

const partsOf = (text: string, separator: string): string[] =>
  text
    .split(separator)
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
