/**
 * Bounds the memory that bodies hold while they arrive and are looked at. Without it, senders who
 * never finish could each have as much of it as the largest body takes.
 */

/** Several of the largest bodies at once, and far less than a small machine has. */
const DEFAULT_LIMITS = { perNetwork: 32 * 1024 * 1024, inAll: 128 * 1024 * 1024 }

export type Upload = {
  /** Counts bytes that have come; false when there is no room for them, which ends it. */
  take(bytes: number): boolean
  /** Gives everything back. */
  end(): void
}

export type Uploads = { begin(clientNetwork: string): Upload }

export function createUploads(limits = DEFAULT_LIMITS): Uploads {
  const held = new Map<string, number>()
  let inAll = 0

  function hold(network: string, bytes: number): void {
    inAll += bytes
    const now = (held.get(network) ?? 0) + bytes
    if (now === 0) held.delete(network)
    else held.set(network, now)
  }

  return {
    begin(network) {
      let own = 0
      let hasEnded = false
      const end = (): void => {
        hold(network, -own)
        own = 0
        hasEnded = true
      }
      return {
        take(bytes) {
          if (hasEnded) return false
          const ofNetwork = (held.get(network) ?? 0) + bytes
          if (ofNetwork > limits.perNetwork || inAll + bytes > limits.inAll) {
            // What came before is dropped with it.
            end()
            return false
          }
          own += bytes
          hold(network, bytes)
          return true
        },
        end,
      }
    },
  }
}
