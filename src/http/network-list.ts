/** A list of networks that is asked with every request, so a longer one takes no longer. */
import { type IpAddress, isIpv4, parseIp } from '../protocol/ip-address.ts'

/** Whether an address is in one of these networks. */
export type IsListed = (address: string) => boolean

/**
 * A look-up costs one step for each length of a prefix in the list.
 * @param blocks addresses and CIDR blocks, which were checked before.
 */
export function networkList(blocks: readonly string[]): IsListed {
  const prefixes = { 4: new Map<bigint, Set<bigint>>(), 6: new Map<bigint, Set<bigint>>() }
  for (const block of blocks) {
    const [text = '', length] = block.split('/')
    const address = parseIp(text)
    if (address === null) throw new Error('a network is neither an address nor a CIDR block')
    const { family, bits, value } = numberOf(address)
    const rest = bits - BigInt(length ?? bits)
    const known = prefixes[family].get(rest) ?? new Set()
    prefixes[family].set(rest, known.add(value >> rest))
  }
  return (text) => {
    const address = parseIp(text)
    if (address === null) return false
    const { family, value } = numberOf(address)
    for (const [rest, known] of prefixes[family]) if (known.has(value >> rest)) return true
    return false
  }
}

function numberOf(address: IpAddress): { family: 4 | 6; bits: bigint; value: bigint } {
  let value = 0n
  for (const byte of address.toByteArray()) value = (value << 8n) | BigInt(byte)
  return isIpv4(address) ? { family: 4, bits: 32n, value } : { family: 6, bits: 128n, value }
}
