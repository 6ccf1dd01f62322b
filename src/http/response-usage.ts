/** Counts what the responses of a budget use: bytes and slots, by capability, by client network and in all. */

/** Bytes. */
export type ResponseBudgetLimits = { perCapability: number; perNetwork: number; inAll: number }

/** Concurrent responses of one capability. A browser opens six connections. */
const MAX_CONCURRENT = 8

/** One response or stream. */
export type Use = {
  capability: string
  network: string
  bytes: number
  /** Streams need no slot. */
  needsSlot: boolean
  hasSlot: boolean
}

export type ResponseUsage = {
  /** The limit that these additional bytes would exceed; null if they fit. */
  exhaustedLimit(use: Use, bytes: number): keyof ResponseBudgetLimits | null
  add(use: Use, bytes: number): void
  takeSlot(use: Use): void
  /** Releases all bytes and the slot. */
  release(use: Use): void
  ofNetwork(network: string): number
  largestNetwork(): string
  inAll(): number
}

export function createResponseUsage(limits: ResponseBudgetLimits): ResponseUsage {
  const byCapability = createTally()
  const byNetwork = createTally()
  const slots = createTally()
  let inAll = 0

  function add(use: Use, bytes: number): void {
    use.bytes += bytes
    inAll += bytes
    byCapability.add(use.capability, bytes)
    byNetwork.add(use.network, bytes)
  }

  return {
    exhaustedLimit(use, bytes) {
      const { capability, network, needsSlot, hasSlot } = use
      if (needsSlot && !hasSlot && slots.of(capability) >= MAX_CONCURRENT) return 'perCapability'
      if (byCapability.of(capability) + bytes > limits.perCapability) return 'perCapability'
      if (byNetwork.of(network) + bytes > limits.perNetwork) return 'perNetwork'
      return inAll + bytes > limits.inAll ? 'inAll' : null
    },
    add,
    takeSlot(use) {
      if (!use.needsSlot || use.hasSlot) return
      use.hasSlot = true
      slots.add(use.capability, 1)
    },
    release(use) {
      add(use, -use.bytes)
      if (use.hasSlot) slots.add(use.capability, -1)
      use.hasSlot = false
    },
    ofNetwork: byNetwork.of,
    largestNetwork: byNetwork.largest,
    inAll: () => inAll,
  }
}

export type Tally = {
  of(name: string): number
  add(name: string, change: number): void
  largest(): string
}

/** Counts by name. A name whose count is zero takes no memory. */
export function createTally(): Tally {
  const counts = new Map<string, number>()
  return {
    of: (name) => counts.get(name) ?? 0,
    add(name, change) {
      const now = (counts.get(name) ?? 0) + change
      if (now === 0) counts.delete(name)
      else counts.set(name, now)
    },
    largest() {
      let [largest, max] = ['', -1]
      for (const [name, count] of counts) if (count > max) [largest, max] = [name, count]
      return largest
    },
  }
}
