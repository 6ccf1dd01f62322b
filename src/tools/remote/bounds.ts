/** How many requests to `/mcp` there may be: in a time, and at once. */
import type { Limit } from '../../http/limits.ts'

/**
 * Requests to `/mcp`, by client: listing tools costs the service as much as a call. What a call does is limited
 * as over HTTP besides.
 */
export const MCP_LIMIT: Limit = { name: 'mcp', perMinute: 240, burst: 120 }
/** The same for messages above 64 KiB, each a ciphertext to be sold: receiving one costs as much as twenty calls. */
export const MCP_LONG_LIMIT: Limit = { name: 'mcpLong', perMinute: 20, burst: 10 }

/**
 * The requests under way, of which a wait is one. Each holds a connection, a server of the protocol and its result, and
 * many agents run behind the addresses of one host.
 */
const PER_NETWORK = 64
const IN_ALL = 512

export function createCalls() {
  const counts = new Map<string, number>()
  let all = 0

  return {
    /** Counts a request until the returned function is called; null if too many are under way. */
    begin(network: string): (() => void) | null {
      const count = counts.get(network) ?? 0
      if (count >= PER_NETWORK || all >= IN_ALL) return null
      counts.set(network, count + 1)
      all++
      let hasEnded = false
      return () => {
        if (hasEnded) return
        hasEnded = true
        all--
        const left = (counts.get(network) ?? 1) - 1
        if (left > 0) counts.set(network, left)
        else counts.delete(network)
      }
    },
  }
}
