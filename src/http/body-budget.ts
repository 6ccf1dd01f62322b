/**
 * Bounds the memory that bodies hold on their way to a capability, from their first byte to the answer.
 * Where there is no room for one more, the network that holds the most gives up its oldest body that
 * is still arriving, unless the newcomer's own network would then hold more: whoever sends a little finds room
 * however many others send slowly, and nobody is refused because of a neighbour that takes it all.
 */

import { widerNetwork } from './client-address.ts'

export type BodyBudgetLimits = { perNetwork: number; perTarget: number; inAll: number }

const MIB = 1024 * 1024
/**
 * Sixteen of the largest bodies for one inbox, and four times that in all: with the copy that the store
 * is handed, what they hold stays a small part of a small machine.
 */
const DEFAULT_LIMITS: BodyBudgetLimits = {
  perNetwork: 32 * MIB,
  perTarget: 16 * MIB,
  inAll: 64 * MIB,
}
/** What a request holds besides its body: its headers, its socket, and its place here. */
export const REQUEST_BYTES = 8 * 1024

/** What one body holds. */
export type BodyReservation = {
  /** Counts more bytes; false where there is no room for them, which gives up all of it. */
  grow(bytes: number): boolean
  /** It has arrived: from now on it keeps its place until the end. */
  received(): void
  /** Gives everything back. */
  release(): void
}

export type BodyBudget = {
  /**
   * A place for a body, or null where there is no room. `givenUp` is called where another body gets
   * it before this one has arrived.
   */
  admit(who: { network: string; target: string }, givenUp: () => void): BodyReservation | null
  /** What is held now, for the metrics. */
  held(): { bodies: number; bytes: number }
}

/** What one network holds, of everything or for one target. `arriving` is in the order of begin. */
type Account = { bytes: number; arriving: Set<Arriving>; around: Surroundings }
type Arriving = { giveUp(): void }
/** What the wider network around some holds together: of those, somebody may have as many as he likes. */
type Surroundings = { name: string; bytes: number; accounts: number }
type Pool = {
  bytes: number
  limit: number
  accounts: Map<string, Account>
  around: Map<string, Surroundings>
}

const emptyPool = (limit: number): Pool => ({
  bytes: 0,
  limit,
  accounts: new Map(),
  around: new Map(),
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

  return {
    held: () => ({ bodies, bytes: all.bytes }),
    admit({ network, target }, givenUp) {
      const pools = [poolOf(target), all]
      let own = 0
      let hasEnded = false

      const arriving: Arriving = {
        giveUp() {
          end()
          givenUp()
        },
      }

      function end(): void {
        if (hasEnded) return
        hasEnded = true
        bodies--
        for (const pool of pools) {
          accountOf(pool, network).arriving.delete(arriving)
          hold(pool, network, -own)
        }
        if (targets.get(target)?.accounts.size === 0) targets.delete(target)
      }

      function take(bytes: number): boolean {
        if (hasEnded) return false
        const ofNetwork = accountOf(all, network).bytes + bytes
        const hasRoom =
          ofNetwork <= limits.perNetwork && pools.every((pool) => makeRoom(pool, network, bytes))
        if (!hasRoom || hasEnded) {
          end()
          return false
        }
        own += bytes
        for (const pool of pools) hold(pool, network, bytes)
        return true
      }

      bodies++
      for (const pool of pools) accountOf(pool, network).arriving.add(arriving)
      if (!take(REQUEST_BYTES)) return null
      return {
        grow: take,
        release: end,
        received() {
          if (hasEnded) return
          for (const pool of pools) accountOf(pool, network).arriving.delete(arriving)
        },
      }
    },
  }
}

/** True once the pool has room for so many bytes more of this network. */
function makeRoom(pool: Pool, network: string, bytes: number): boolean {
  while (pool.bytes + bytes > pool.limit) {
    // As it is without these bytes: where all hold as much as it will, the last part must find room.
    let heaviest = accountOf(pool, network)
    let oldest: Arriving | null = null
    for (const account of pool.accounts.values()) {
      const [first] = account.arriving
      if (!first || !isHeavier(account, heaviest)) continue
      heaviest = account
      oldest = first
    }
    if (!oldest) return false
    oldest.giveUp()
  }
  return true
}

/** Wider networks are compared first: many small networks of one are one. */
function isHeavier(one: Account, other: Account): boolean {
  return one.around === other.around
    ? one.bytes > other.bytes
    : one.around.bytes > other.around.bytes
}

function accountOf({ accounts, around }: Pool, network: string): Account {
  const known = accounts.get(network)
  if (known) return known
  const name = widerNetwork(network)
  const surroundings = around.get(name) ?? { name, bytes: 0, accounts: 0 }
  surroundings.accounts++
  around.set(name, surroundings)
  const account = { bytes: 0, arriving: new Set<Arriving>(), around: surroundings }
  accounts.set(network, account)
  return account
}

function hold(pool: Pool, network: string, bytes: number): void {
  const account = accountOf(pool, network)
  pool.bytes += bytes
  account.bytes += bytes
  account.around.bytes += bytes
  if (account.bytes > 0 || account.arriving.size > 0) return
  pool.accounts.delete(network)
  if (--account.around.accounts === 0) pool.around.delete(account.around.name)
}
