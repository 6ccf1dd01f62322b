/**
 * A memory budget for request bodies, from their first byte to the answer. When it is used up, the
 * network that holds the most loses its oldest body that is still arriving, unless the newcomer's own
 * network would then hold more. So a small body is admitted however many others arrive slowly, and one
 * network cannot use up the budget of the others.
 */
import { widerNetwork } from './client-address.ts'

export type BodyBudgetLimits = { perNetwork: number; perTarget: number; inAll: number }

const MIB = 1024 * 1024
/**
 * Sixteen of the largest bodies for one inbox, and four times that in all. Even with the store's copies, this
 * is a small part of a small machine's memory.
 */
const DEFAULT_LIMITS: BodyBudgetLimits = {
  perNetwork: 32 * MIB,
  perTarget: 16 * MIB,
  inAll: 64 * MIB,
}
/** The memory of a request besides its body: headers, socket and reservation. */
export const REQUEST_BYTES = 8 * 1024

/** The memory that one body may hold. */
export type BodyReservation = {
  /** Adds bytes. If they do not fit, it releases the whole reservation and returns false. */
  reserve(bytes: number): boolean
  /** Holds so many bytes from now on, besides the request. If they do not fit, it keeps what it had, and returns false. */
  resize(bytes: number): boolean
  /** Aborted when another body takes the memory, before this one has arrived. */
  evicted: AbortSignal
  /** The body has arrived: from now on it cannot be evicted. */
  received(): void
  release(): void
}

export type BodyBudget = {
  /** A reservation for one body, or null if it does not fit. */
  admit(body: { network: string; target: string }): BodyReservation | null
  /** The current reservations, for the metrics. */
  held(): { bodies: number; bytes: number }
}

/** The budget of one target, or of all together. */
type Pool = {
  bytes: number
  limit: number
  accounts: Map<string, Account>
  widerNetworks: Map<string, WiderNetwork>
}
/** The share of one network in a pool. `arriving` is in the order of admission. */
type Account = { bytes: number; arriving: Set<Arriving>; wider: WiderNetwork }
type Arriving = { evict(): void }
/** The share of all networks within a wider one: one client may control many of them. */
type WiderNetwork = { name: string; bytes: number; accounts: number }

const emptyPool = (limit: number): Pool => ({
  bytes: 0,
  limit,
  accounts: new Map(),
  widerNetworks: new Map(),
})

export function createBodyBudget(limits = DEFAULT_LIMITS): BodyBudget {
  const all = emptyPool(limits.inAll)
  const targets = new Map<string, Pool>()
  let bodies = 0

  function poolOf(target: string): Pool {
    const known = targets.get(target)
    if (known) return known
    const pool = emptyPool(limits.perTarget)
    targets.set(target, pool)
    return pool
  }

  function admit({ network, target }: { network: string; target: string }): BodyReservation | null {
    const pools = [poolOf(target), all]
    const eviction = new AbortController()
    let reserved = 0
    let hasEnded = false

    const arriving: Arriving = {
      evict() {
        release()
        eviction.abort()
      },
    }

    function release(): void {
      if (hasEnded) return
      hasEnded = true
      bodies--
      for (const pool of pools) {
        accountOf(pool, network).arriving.delete(arriving)
        addBytes(pool, network, -reserved)
      }
      if (targets.get(target)?.accounts.size === 0) targets.delete(target)
    }

    function reserve(bytes: number): boolean {
      if (add(bytes)) return true
      release()
      return false
    }

    /** Adds bytes, or takes them back. False if they do not fit, or the reservation has ended. */
    function add(bytes: number): boolean {
      if (hasEnded) return false
      const hasRoom = bytes <= 0 || fits(bytes)
      if (!hasRoom || hasEnded) return false
      reserved += bytes
      for (const pool of pools) addBytes(pool, network, bytes)
      return true
    }

    const fits = (bytes: number): boolean =>
      accountOf(all, network).bytes + bytes <= limits.perNetwork &&
      pools.every((pool) => evictUntilFits(pool, network, bytes))

    bodies++
    for (const pool of pools) accountOf(pool, network).arriving.add(arriving)
    if (!reserve(REQUEST_BYTES)) return null
    return {
      reserve,
      resize: (bytes) => add(REQUEST_BYTES + bytes - reserved),
      evicted: eviction.signal,
      received() {
        if (hasEnded) return
        for (const pool of pools) accountOf(pool, network).arriving.delete(arriving)
      },
      release,
    }
  }

  return { admit, held: () => ({ bodies, bytes: all.bytes }) }
}

/** Evicts arriving bodies of larger networks until these bytes fit; false if that is not enough. */
function evictUntilFits(pool: Pool, network: string, bytes: number): boolean {
  while (pool.bytes + bytes > pool.limit) {
    // Compared without these bytes: if all networks hold the same, the last part of a body must still fit.
    let largest = accountOf(pool, network)
    let oldest: Arriving | null = null
    for (const account of pool.accounts.values()) {
      const [first] = account.arriving
      if (!first || !isLarger(account, largest)) continue
      largest = account
      oldest = first
    }
    if (!oldest) return false
    oldest.evict()
  }
  return true
}

/** Wider networks are compared first: many small networks within one count as one. */
function isLarger(one: Account, other: Account): boolean {
  return one.wider === other.wider ? one.bytes > other.bytes : one.wider.bytes > other.wider.bytes
}

function accountOf({ accounts, widerNetworks }: Pool, network: string): Account {
  const known = accounts.get(network)
  if (known) return known
  const name = widerNetwork(network)
  const wider = widerNetworks.get(name) ?? { name, bytes: 0, accounts: 0 }
  wider.accounts++
  widerNetworks.set(name, wider)
  const account = { bytes: 0, arriving: new Set<Arriving>(), wider }
  accounts.set(network, account)
  return account
}

function addBytes(pool: Pool, network: string, bytes: number): void {
  const account = accountOf(pool, network)
  pool.bytes += bytes
  account.bytes += bytes
  account.wider.bytes += bytes
  if (account.bytes > 0 || account.arriving.size > 0) return
  pool.accounts.delete(network)
  if (--account.wider.accounts === 0) pool.widerNetworks.delete(account.wider.name)
}
