/**
 * The memory budget of requests: bodies, messages, answers and streams reserve the bytes that they hold. It is
 * bounded in all, by client network, and by pool, such as one inbox. Without room, the network that holds the most
 * gives up what makes the least progress, and what nobody has paid for goes first. An answer waits for room in one
 * queue, and holds nothing meanwhile.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { widerNetwork } from './client-address.ts'
import { rateLimited } from './limits.ts'
import { createTurns } from './turns.ts'

const MIB = 1024 * 1024
/**
 * A small part of a small machine's memory, even with the store's copies. A network has room for several of the
 * largest bodies. What strangers send before they pay leaves half to all others.
 */
const LIMITS = {
  inAll: 128 * MIB,
  perNetwork: 32 * MIB,
  /** Bodies that arrive for one inbox. */
  perInbox: 16 * MIB,
  /** Answers of one capability: the largest WHISPER, and a page of events. */
  perCapability: 12 * MIB,
  /** Bodies of purchases that are not proven to be paid. */
  unpaid: 64 * MIB,
  /** Messages to `/mcp`, which stay until they are answered. */
  messages: 32 * MIB,
  messagesOfNetwork: 8 * MIB,
}
export type MemoryLimits = typeof LIMITS

/** The largest bodies that a plan can allow. Beside what else its request holds, one finds room. */
export const LARGEST_BODY = { inbox: LIMITS.perInbox - MIB, purchase: LIMITS.perNetwork - MIB }

/** The memory of a request besides its body: headers, socket and reservation. */
export const REQUEST_BYTES = 8 * 1024
/** How many answers may wait for room. */
const MAX_WAITING = { perCapability: 64, perNetwork: 128, inAll: 1024 }
/** A reader that took nothing for so long is slow. An answer that waits looks for one so often. */
const CHECK_MS = 2_000
/** After so many checks an answer that waits is refused; before the last one a reader is closed that is not slow. */
const MAX_CHECKS = 5
const RETRY_SECONDS = 2

/** What is reserved for: a request to an inbox, a purchase that may never be paid, a paid one, `/mcp`, an answer. */
export type Kind = BodyKind | 'answer'
export type BodyKind = 'inbox' | 'unpaid' | 'paid' | 'message'

/** A part of the budget with a limit of its own. */
type Pool = {
  name: string
  limit: number
  bytes: number
  entries: Set<Entry>
  /** By client network, and by wide network. */
  byNetwork: Map<string, number>
}

type Entry = {
  kind: Kind
  network: string
  wide: string
  /** The narrowest first, all last. */
  pools: Pool[]
  bytes: number
  /** The latest progress of the client, or of what is made for it: its place among all progress, and its time. */
  progress: { place: number; at: number }
  /** Its bytes cannot be given up: a body has arrived, or the service works for it. */
  isPinned: boolean
  /** The client has disconnected: nothing more is reserved for it. */
  hasLeft: boolean
  hasEnded: boolean
  /** Called when its bytes go to another. */
  evict(): void
}

/** An answer that waits for room. */
type Waiter = {
  entry: Entry
  bytes: number
  /** The place of the latest progress when it last looked for room. */
  since: number
  isStream: boolean
  checks: number
  end(outcome: boolean | Error): void
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What its answer has reserved, if that is counted. */
    reservation?: Reservation
  }
}

export type Memory = ReturnType<typeof createMemory>
export type BodyReservation = NonNullable<ReturnType<Memory['forBody']>>
export type Reservation = ReturnType<Memory['forAnswer']>

/** @param networkOf the client network of a request. */
export function createMemory(
  networkOf: (request: FastifyRequest) => string,
  limits: MemoryLimits = LIMITS,
) {
  const pools = new Map<string, Pool>()
  const all = poolOf('all', limits.inAll)
  const queue = new Set<Waiter>()
  const waitTurn = createTurns()
  let progress = 0
  let closedReaders = 0

  function poolOf(name: string, limit: number): Pool {
    const pool = pools.get(name) ?? {
      name,
      limit,
      bytes: 0,
      entries: new Set(),
      byNetwork: new Map(),
    }
    pools.set(name, pool)
    return pool
  }

  function open(kind: Kind, network: string, own: Pool[]): Entry {
    const entry: Entry = {
      kind,
      network,
      wide: `${widerNetwork(network)}.*`,
      pools: [...own, all],
      bytes: 0,
      progress: { place: ++progress, at: performance.now() },
      isPinned: false,
      hasLeft: false,
      hasEnded: false,
      evict: () => undefined,
    }
    for (const { entries } of entry.pools) entries.add(entry)
    return entry
  }

  /** Where so many bytes more find no room; null if they do. */
  function whereFull({ pools: own, network }: Entry, bytes: number): Pool | 'network' | null {
    if (bytes <= 0) return null
    const full = own.find((pool) => pool.bytes + bytes > pool.limit)
    if (full && full !== all) return full
    if ((all.byNetwork.get(network) ?? 0) + bytes > limits.perNetwork) return 'network'
    return full ?? null
  }

  function setBytes(entry: Entry, bytes: number): void {
    if (entry.hasEnded) return
    const change = bytes - entry.bytes
    entry.bytes = bytes
    for (const pool of entry.pools) {
      pool.bytes += change
      addTo(pool.byNetwork, entry.network, change)
      addTo(pool.byNetwork, entry.wide, change)
    }
    if (change < 0) admitWaiting()
  }

  const progressed = (entry: Entry): void => {
    entry.progress = { place: ++progress, at: performance.now() }
  }

  /** Holds so many bytes more, at the expense of others. False, and nothing has changed, if that is not enough. */
  function take(entry: Entry, bytes: number): boolean {
    for (let full = whereFull(entry, bytes); full; full = whereFull(entry, bytes)) {
      const victim = victimOf(entry, full)
      if (!victim) return false
      give(victim)
    }
    if (entry.hasLeft) return false
    setBytes(entry, entry.bytes + bytes)
    return true
  }

  function give(victim: Entry): void {
    if (victim.kind === 'answer') closedReaders++
    victim.evict()
    end(victim)
  }

  /**
   * Who gives up its bytes: in the network that has most, who made progress the longest time ago. A body that is
   * arriving gives way to smaller networks, and an unpaid one to all that is paid; an answer only if it is slow.
   * @param waiter an answer that waits has its room from readers of its own network too, and at last from any.
   */
  function victimOf(asking: Entry, full: Pool | 'network', waiter?: Waiter): Entry | null {
    const pool = full === 'network' ? all : full
    const held = (name: string): number => pool.byNetwork.get(name) ?? 0
    const larger = (one: Entry, other: Entry): number =>
      one.wide === other.wide
        ? held(one.network) - held(other.network)
        : held(one.wide) - held(other.wide)
    function mayGive(entry: Entry): boolean {
      if (entry === asking || entry.isPinned || entry.bytes === 0) return false
      if (full === 'network' && entry.network !== asking.network) return false
      const isLarger = larger(entry, asking) > 0
      if (entry.kind !== 'answer') {
        return isLarger || (entry.kind === 'unpaid' && asking.kind !== 'unpaid')
      }
      if (!waiter) return isLarger && performance.now() - entry.progress.at >= CHECK_MS
      return entry.progress.place <= waiter.since || waiter.checks === MAX_CHECKS - 1
    }
    let found: Entry | null = null
    for (const entry of pool.entries) {
      if (!mayGive(entry)) continue
      const most = found ? larger(entry, found) : 1
      if (most > 0 || (most === 0 && found && entry.progress.place < found.progress.place)) {
        found = entry
      }
    }
    return found
  }

  function end(entry: Entry): void {
    if (entry.hasEnded) return
    entry.hasLeft = true
    for (const waiter of queue) if (waiter.entry === entry) waiter.end(false)
    // The bytes of a read are in memory until it ends.
    if (entry.kind === 'answer' && entry.isPinned) return
    setBytes(entry, 0)
    entry.hasEnded = true
    for (const { name, entries } of entry.pools) {
      entries.delete(entry)
      if (entries.size === 0 && name !== all.name) pools.delete(name)
    }
  }

  /**
   * Networks that hold nothing go first; the others follow in the order in which they came. Called for each release of
   * bytes, when thousands may wait.
   */
  function admitWaiting(): void {
    if (queue.size === 0) return
    for (const holds of [false, true]) {
      for (const waiter of queue) {
        const { entry, bytes } = waiter
        if (all.byNetwork.has(entry.network) !== holds || whereFull(entry, bytes)) continue
        waiter.end(true)
        progressed(entry)
        setBytes(entry, bytes)
      }
    }
  }

  /** Whether so many answers wait already that this one is refused. */
  function isCrowded({ pools: [own], network }: Entry): boolean {
    const waiting = [...queue].filter((each) => !each.isStream)
    const ofPool = waiting.filter((each) => each.entry.pools[0] === own)
    const ofNetwork = waiting.filter((each) => each.entry.network === network)
    return (
      ofPool.length >= MAX_WAITING.perCapability ||
      ofNetwork.length >= MAX_WAITING.perNetwork ||
      waiting.length >= MAX_WAITING.inAll
    )
  }

  function wait(entry: Entry, bytes: number, isStream: boolean): Promise<boolean> {
    if (!isStream && isCrowded(entry)) throw rateLimited(RETRY_SECONDS)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const timer = setInterval(() => check(waiter), CHECK_MS)
    const waiter: Waiter = {
      entry,
      bytes,
      isStream,
      since: progress,
      checks: 0,
      end(outcome) {
        clearInterval(timer)
        queue.delete(waiter)
        if (outcome instanceof Error) reject(outcome)
        else resolve(outcome)
      },
    }
    queue.add(waiter)
    return promise
  }

  /** Closes the slowest reader, and refuses an answer that has waited too long. */
  function check(waiter: Waiter): void {
    const { entry, bytes, isStream } = waiter
    waiter.checks++
    if (!isStream && waiter.checks >= MAX_CHECKS) {
      waiter.end(rateLimited(RETRY_SECONDS))
      return
    }
    const full = whereFull(entry, bytes)
    const victim = full && victimOf(entry, full, waiter)
    if (victim) give(victim)
    waiter.since = progress
  }

  /** @param isStream it waits without a time limit, and its client tries again by itself. */
  function forAnswer(reply: FastifyReply, capability: string, { isStream = false } = {}) {
    const response = reply.raw
    const pool = poolOf(`answers ${capability}`, limits.perCapability)
    const entry = open('answer', networkOf(reply.request), [pool])
    entry.evict = () => void response.destroy()
    /**
     * While the service works for it, its bytes stay counted, even if the client disconnects, and its reader, who has
     * nothing to take, is not slow.
     */
    async function working<T>(work: () => Promise<T>): Promise<T> {
      entry.isPinned = true
      try {
        return await work()
      } finally {
        entry.isPinned = false
        progressed(entry)
        if (entry.hasLeft) end(entry)
      }
    }
    const reservation = {
      /**
       * Releases the previous bytes, and waits until these fit. False once the client has disconnected.
       * @throws Problem `rate limited` if the response did not fit in time.
       */
      async reserve(wanted: number): Promise<boolean> {
        if (entry.hasLeft) return false
        // A response above the capability's limit comes from a large plan, and may use the whole limit.
        const bytes = Math.min(wanted, limits.perCapability)
        setBytes(entry, 0)
        if (whereFull(entry, bytes)) return wait(entry, bytes, isStream)
        progressed(entry)
        setBytes(entry, bytes)
        return true
      },
      /** Changes the reservation to the actual size, once that is known. */
      resize: (bytes: number): void => setBytes(entry, bytes),
      /** Waits for a turn of the event loop in which to make a part of the response. */
      waitTurn: (): Promise<void> => working(() => waitTurn(capability, async () => undefined)),
      /** Runs a read from the store. */
      whileReading: working,
      /** The client has taken bytes. */
      progressed: (): void => progressed(entry),
      release: (): void => end(entry),
    }
    reply.request.reservation = reservation
    if (response.destroyed) end(entry)
    else response.once('close', reservation.release)
    return reservation
  }

  /**
   * For a body from its first byte to the answer; null if it does not fit.
   * @param options.inbox to which it goes, which has a limit of its own.
   */
  function forBody(kind: BodyKind, options: { network: string; inbox?: string }) {
    const { network, inbox } = options
    const eviction = new AbortController()
    const own = {
      inbox: () => [poolOf(`inbox ${inbox}`, limits.perInbox)],
      unpaid: () => [poolOf('unpaid', limits.unpaid)],
      paid: () => [],
      message: () => [
        poolOf(`messages of ${network}`, limits.messagesOfNetwork),
        poolOf('messages', limits.messages),
      ],
    }
    const entry = open(kind, network, own[kind]())
    entry.evict = () => eviction.abort()
    const reservation = {
      /** Holds so many bytes more. If they do not fit, it keeps what it had, and returns false. */
      reserve: (bytes: number): boolean => take(entry, bytes),
      /** The same for so many bytes beside the request. */
      resize: (bytes: number): boolean => take(entry, REQUEST_BYTES + bytes - entry.bytes),
      /** Aborted when another body takes the memory, before this one has arrived. */
      evicted: eviction.signal,
      /** The body has arrived: from now on its memory cannot go to another. */
      received(): void {
        entry.isPinned = true
      },
      release: (): void => end(entry),
    }
    if (reservation.reserve(REQUEST_BYTES)) return reservation
    end(entry)
    return null
  }

  return {
    forAnswer,
    forBody,
    /** The reserved bytes by what they are for. */
    bytesByKind(): Record<Kind, number> {
      const bytes = { inbox: 0, unpaid: 0, paid: 0, message: 0, answer: 0 }
      for (const entry of all.entries) bytes[entry.kind] += entry.bytes
      return bytes
    },
    waiting: (): number => queue.size,
    /** How many readers were disconnected to free memory for others. */
    closedReaders: (): number => closedReaders,
  }
}

/** Counts by name. A name whose count is zero takes no memory. */
function addTo(counts: Map<string, number>, name: string, change: number): void {
  const now = (counts.get(name) ?? 0) + change
  if (now === 0) counts.delete(name)
  else counts.set(name, now)
}
