/**
 * A memory budget for responses. Bytes are counted before they are read from the store and until the client
 * has taken them: by capability, by client network and in all. A response that does not fit waits, and holds
 * no memory. If no reader makes progress meanwhile, the slowest one is disconnected. Small responses, and
 * those that all clients share, are not counted.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createResponseQueue, type Waiting } from './response-queue.ts'
import { createResponseUsage, type ResponseBudgetLimits, type Use } from './response-usage.ts'
import { createTurnQueue } from './turn-queue.ts'

export type { ResponseBudgetLimits } from './response-usage.ts'

const MIB = 1024 * 1024

/**
 * The largest response is a WHISPER of 8 MiB. A capability may have one of them and a page of events, and a
 * client network a third of the total.
 */
const DEFAULT_LIMITS = { perCapability: 12 * MIB, perNetwork: 16 * MIB, inAll: 48 * MIB }

/** The memory that one response or stream may hold. It is released with the connection at the latest. */
export type Reservation = {
  /**
   * Releases the previous bytes, and waits until these fit. False once the client has disconnected.
   * @throws Problem `rate limited` if the response did not fit in time.
   */
  reserve(bytes: number): Promise<boolean>
  /** Changes the reservation to the actual size, once that is known. */
  resize(bytes: number): void
  /**
   * Waits for a turn of the event loop in which to serialize a part of the response. Each turn has one part,
   * so that small requests are answered in between.
   */
  waitTurn(): Promise<void>
  /** Runs a read from the store. Its bytes stay counted until it ends, even if the client disconnects. */
  whileReading<T>(read: () => Promise<T>): Promise<T>
  /** The client has taken bytes. The slowest client is the one that did so the longest time ago. */
  progressed(): void
  release(): void
}

export type ResponseBudget = {
  /**
   * Waits for one of the slots of this capability, and keeps it until the response ends.
   * @throws Problem `rate limited` if too many wait already, or this one has waited too long.
   */
  forResponse(reply: FastifyReply, capability: string): Promise<Reservation>
  /** For a stream, which needs no slot and waits without a time limit. */
  forStream(reply: FastifyReply, capability: string): Reservation
  /** The reservation of this request, if its response is counted. */
  reservationOf(request: FastifyRequest): Reservation | undefined
  reservedBytes(): number
  waiting(): number
  /** How many readers were disconnected to free memory for others. */
  closedReaders(): number
}

type Entry = Use & {
  /** The value of the progress counter when its client last took something. */
  progressedAt: number
  isReading: boolean
  /** The client has disconnected: nothing more is reserved for it. */
  hasLeft: boolean
  hasEnded: boolean
  disconnect(): void
}

/** @param networkOf the client network of a request. */
export function createResponseBudget(
  networkOf: (request: FastifyRequest) => string,
  limits: ResponseBudgetLimits = DEFAULT_LIMITS,
): ResponseBudget {
  const usage = createResponseUsage(limits)
  const entries = new Set<Entry>()
  const byRequest = new WeakMap<FastifyRequest, Reservation>()
  const waitTurn = createTurnQueue()
  const queue = createResponseQueue<Entry>({ onCheck: disconnectSlowest, onRefused: end })
  /** A counter of all readers' progress: a lower value is longer ago. */
  let progress = 0
  let closedReaders = 0

  function setBytes(entry: Entry, bytes: number): void {
    if (entry.hasEnded) return
    const change = bytes - entry.bytes
    usage.add(entry, change)
    if (change < 0) admitWaiting()
  }

  function admit(entry: Entry, bytes: number): void {
    usage.takeSlot(entry)
    entry.progressedAt = ++progress
    setBytes(entry, bytes)
  }

  /** Networks that hold nothing go first; the others follow in the order in which they came. */
  function admitWaiting(): void {
    if (queue.waiters().size === 0) return
    const waiters = [...queue.waiters()]
    const holdsBytes = ({ entry }: Waiting<Entry>): boolean => usage.ofNetwork(entry.network) > 0
    const first = waiters.filter((waiter) => !holdsBytes(waiter))
    for (const waiter of [...first, ...waiters.filter(holdsBytes)]) {
      if (usage.exhaustedLimit(waiter.entry, waiter.bytes) !== null) continue
      admit(waiter.entry, waiter.bytes)
      waiter.end(true)
    }
  }

  /** Disconnects the slowest reader if it made no progress during the wait; at the last check, in any case. */
  function disconnectSlowest({ entry, bytes, since }: Waiting<Entry>, isLastCheck: boolean): void {
    const limit = usage.exhaustedLimit(entry, bytes)
    const victim = limit === null ? null : slowest(limit, entry)
    if (!victim) return
    if (victim.progressedAt > since && !isLastCheck) return
    closedReaders++
    victim.disconnect()
    end(victim)
  }

  /** The slowest reader under the exhausted limit. Under the total, the slowest of the largest network. */
  function slowest(limit: keyof ResponseBudgetLimits, asking: Entry): Entry | null {
    const network = limit === 'inAll' ? usage.largestNetwork() : asking.network
    const isUnderLimit = (entry: Entry): boolean =>
      limit === 'perCapability' ? entry.capability === asking.capability : entry.network === network
    // A waiting response holds no memory that another could use.
    const waiting = new Set(Array.from(queue.waiters(), ({ entry }) => entry))
    let found: Entry | null = null
    for (const entry of entries) {
      if (waiting.has(entry) || (entry.bytes === 0 && !entry.hasSlot)) continue
      if (!isUnderLimit(entry)) continue
      if (found === null || entry.progressedAt < found.progressedAt) found = entry
    }
    return found
  }

  function end(entry: Entry): void {
    if (entry.hasEnded) return
    entry.hasLeft = true
    entries.delete(entry)
    for (const waiter of queue.waiters()) if (waiter.entry === entry) waiter.end(false)
    // The bytes of a read are in memory until it ends.
    if (entry.isReading) return
    entry.hasEnded = true
    usage.release(entry)
    admitWaiting()
  }

  function open(reply: FastifyReply, capability: string, needsSlot: boolean): Reservation {
    const response = reply.raw
    const entry: Entry = {
      capability,
      network: networkOf(reply.request),
      bytes: 0,
      progressedAt: ++progress,
      needsSlot,
      hasSlot: false,
      isReading: false,
      hasLeft: false,
      hasEnded: false,
      disconnect: () => response.destroy(),
    }
    entries.add(entry)
    const reservation = reservationFor(entry)
    byRequest.set(reply.request, reservation)
    if (response.destroyed) end(entry)
    else response.once('close', reservation.release)
    return reservation
  }

  function reservationFor(entry: Entry): Reservation {
    return {
      async reserve(wanted) {
        if (entry.hasLeft) return false
        // A response above the capability's limit comes from a large plan, and may use the whole limit.
        const bytes = Math.min(wanted, limits.perCapability)
        setBytes(entry, 0)
        if (usage.exhaustedLimit(entry, bytes) !== null) {
          return queue.wait({ entry, bytes, since: progress })
        }
        admit(entry, bytes)
        return true
      },
      resize: (bytes) => setBytes(entry, bytes),
      waitTurn,
      async whileReading(read) {
        entry.isReading = true
        try {
          return await read()
        } finally {
          entry.isReading = false
          if (entry.hasLeft) end(entry)
        }
      },
      progressed() {
        entry.progressedAt = ++progress
      },
      release: () => end(entry),
    }
  }

  return {
    async forResponse(reply, capability) {
      const reservation = open(reply, capability, true)
      await reservation.reserve(0)
      return reservation
    },
    forStream: (reply, capability) => open(reply, capability, false),
    reservationOf: (request) => byRequest.get(request),
    reservedBytes: usage.inAll,
    waiting: () => queue.waiters().size,
    closedReaders: () => closedReaders,
  }
}
