/** The settings of how much the service takes. An error's message completes "<name> must be …". */

/** A tebibyte: more than the disk of a small machine, and small enough for exact sums. */
const MAX_UNPAID_BYTES = 1024 ** 4

export function unpaidBytes(value: string): { perNetwork: number; inAll: number } {
  const parts = value.split(',').map((part) => part.trim())
  const [perNetwork = 0, inAll = 0] = parts.map(Number)
  const isTwo = parts.length === 2 && parts.every((part) => /^[1-9]\d{0,14}$/.test(part))
  if (!isTwo || perNetwork > MAX_UNPAID_BYTES || inAll > MAX_UNPAID_BYTES)
    throw new Error(
      `two numbers of bytes from 1 to ${MAX_UNPAID_BYTES}, comma-separated: per client network, and in all`,
    )
  return { perNetwork, inAll }
}
