/**
 * Bounds the memory that answers hold until their readers have taken them. Bytes are counted from
 * before they are read in the store until they are sent, by capability, by client network and in
 * all. Where there is no room an answer waits, holding nothing; where nothing moves meanwhile, the
 * slowest reader is closed. What is small, or shared by all who ask for it, is not counted.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { rateLimited } from './limits.ts'

const MIB = 1024 * 1024

/**
 * Bytes. The largest single answer is a WHISPER of 8 MiB: one capability has room for one and a
 * page beside it, and no client network has more than a third of the whole.
 */
const MOST = { perCapability: 12 * MIB, perNetwork: 16 * MIB, inAll: 48 * MIB }
/** Answers of one capability that are made or sent at once. A browser opens six connections. */
const ANSWERS_MOST = 8
/** Answers that may wait for their turn or for room, of one capability and of one network. */
const WAITING_MOST = { perCapability: 32, perNetwork: 128 }
/** Somebody who waits asks this often whether a slow reader has to go. */
const LOOK_MS = 2_000
/** Looks after which an answer that still has no room is refused. */
const LOOKS_MOST = 5
const RETRY_SECONDS = 2

/** What one answer or one stream holds. It ends with its connection at the latest. */
export type Reservation = {
  /**
   * Waits until so many bytes may be held in place of what was; meanwhile it counts as holding
   * nothing. False once its reader has gone.
   * @throws Problem `rate limited` for an answer that found no room in time.
   */
  reserve(bytes: number): Promise<boolean>
  /** Says what is really held, once that is known. */
  resize(bytes: number): void
  /**
   * Waits for its turn to make a part of an answer out of what was read. One part is made in a turn of
   * the event loop, so that whoever asks for something small is answered in between, however many read.
   */
  waitTurn(): Promise<void>
  /** Runs a read that fills it: what is read is held until that has ended, though its reader leave. */
  whileReading<T>(read: () => Promise<T>): Promise<T>
  /** Its reader took something. Who has not for the longest time is the slowest. */
  progressed(): void
  release(): void
}

export type ResponseBudget = {
  /**
   * A place among the answers of this capability; it ends with the answer.
   * @throws Problem `rate limited` where too many wait already, or for too long.
   */
  forResponse(reply: FastifyReply, capability: string): Promise<Reservation>
  /** For a stream, which waits as long as it takes. */
  forStream(reply: FastifyReply, capability: string): Reservation
  /** What the answer of this request holds, if that is counted. */
  reservationOf(request: FastifyRequest): Reservation | undefined
  reservedBytes(): number
  waiting(): number
  /** How many readers were closed because others had no room. */
  closedReaders(): number
}

export type ResponseBudgetLimits = { perCapability: number; perNetwork: number; inAll: number }

type Held = {
  capability: string
  network: string
  bytes: number
  /** The count of moves at its last own. */
  movedAt: number
  /** Whether it has, or waits for, a place among the answers of its capability. */
  isAnswer: boolean
  hasPlace: boolean
  isReading: boolean
  /** Its reader has gone, and nothing more is given to it. */
  hasLeft: boolean
  hasEnded: boolean
  close(): void
}

type Waiter = {
  held: Held
  bytes: number
  begun: number
  looks: number
  end(hasRoom: boolean): void
}

/** @param networkOf the client network of a request. */
export function createResponseBudget(
  networkOf: (request: FastifyRequest) => string,
  limits: ResponseBudgetLimits = MOST,
): ResponseBudget {
  const holds = new Set<Held>()
  const ofCapability = createCounts()
  const ofNetwork = createCounts()
  const places = createCounts()
  const waitingOf = { capability: createCounts(), network: createCounts() }
  const byRequest = new WeakMap<FastifyRequest, Reservation>()
  const turns = createTurns()
  let waiting: Waiter[] = []
  let inAll = 0
  /** Counts every move of every reader: who moved at a lower count has been still for longer. */
  let moves = 0
  let closed = 0

  function count(held: Held, change: number): void {
    held.bytes += change
    inAll += change
    ofCapability.add(held.capability, change)
    ofNetwork.add(held.network, change)
  }

  function setBytes(held: Held, bytes: number): void {
    if (held.hasEnded) return
    const change = bytes - held.bytes
    count(held, change)
    if (change < 0) serve()
  }

  /** The part of the room that has no place for these bytes; null where they fit. */
  function fullFor({
    held,
    bytes,
  }: Pick<Waiter, 'held' | 'bytes'>): keyof ResponseBudgetLimits | null {
    if (held.isAnswer && !held.hasPlace && places.of(held.capability) >= ANSWERS_MOST) {
      return 'perCapability'
    }
    if (ofCapability.of(held.capability) + bytes > limits.perCapability) return 'perCapability'
    if (ofNetwork.of(held.network) + bytes > limits.perNetwork) return 'perNetwork'
    return inAll + bytes > limits.inAll ? 'inAll' : null
  }

  function admit(held: Held, bytes: number): void {
    if (held.isAnswer && !held.hasPlace) {
      held.hasPlace = true
      places.add(held.capability, 1)
    }
    held.movedAt = ++moves
    setBytes(held, bytes)
  }

  /** Who comes from a network that holds nothing goes first; then whoever came first. */
  function serve(): void {
    if (waiting.length === 0) return
    const [first, others] = [[] as Waiter[], [] as Waiter[]]
    for (const waiter of waiting) {
      ;(ofNetwork.of(waiter.held.network) === 0 ? first : others).push(waiter)
    }
    for (const waiter of [...first, ...others]) {
      if (fullFor(waiter) !== null) continue
      admit(waiter.held, waiter.bytes)
      waiter.end(true)
    }
  }

  /** The slowest of those who fill this part of the room; in all of it, of the network that has most. */
  function slowest(full: keyof ResponseBudgetLimits, { held: asker }: Waiter): Held | null {
    const network = full === 'inAll' ? ofNetwork.largest() : asker.network
    // Whoever waits has nothing that could be given to another.
    const waits = new Set(waiting.map(({ held }) => held))
    let found: Held | null = null
    for (const held of holds) {
      if (waits.has(held) || (held.bytes === 0 && !held.hasPlace)) continue
      const isInIt =
        full === 'perCapability' ? held.capability === asker.capability : held.network === network
      if (isInIt && (found === null || held.movedAt < found.movedAt)) found = held
    }
    return found
  }

  /** Closes who has taken nothing while this one waited; before it is given up, the slowest anyhow. */
  function lookFor(waiter: Waiter): void {
    const full = fullFor(waiter)
    const victim = full === null ? null : slowest(full, waiter)
    if (!victim) return
    const isLast = waiter.looks === LOOKS_MOST - 1
    if (victim.movedAt > waiter.begun && !isLast) return
    closed++
    victim.close()
    end(victim)
  }

  function wait(held: Held, bytes: number): Promise<boolean> {
    const { capability, network } = held
    const isTooMany =
      waitingOf.capability.of(capability) >= WAITING_MOST.perCapability ||
      waitingOf.network.of(network) >= WAITING_MOST.perNetwork
    if (held.isAnswer && isTooMany) throw rateLimited(RETRY_SECONDS)
    return new Promise((resolve, reject) => {
      const timer = setInterval(() => {
        waiter.looks++
        if (held.isAnswer && waiter.looks >= LOOKS_MOST) {
          waiter.end(false)
          end(held)
          return reject(rateLimited(RETRY_SECONDS))
        }
        lookFor(waiter)
      }, LOOK_MS)
      const waiter: Waiter = {
        held,
        bytes,
        begun: moves,
        looks: 0,
        end(hasRoom) {
          clearInterval(timer)
          waiting = waiting.filter((other) => other !== waiter)
          if (held.isAnswer) {
            waitingOf.capability.add(capability, -1)
            waitingOf.network.add(network, -1)
          }
          if (hasRoom || held.hasLeft) resolve(hasRoom)
        },
      }
      if (held.isAnswer) {
        waitingOf.capability.add(capability, 1)
        waitingOf.network.add(network, 1)
      }
      waiting.push(waiter)
    })
  }

  function end(held: Held): void {
    if (held.hasEnded) return
    held.hasLeft = true
    holds.delete(held)
    for (const waiter of waiting) if (waiter.held === held) waiter.end(false)
    if (held.isReading) return
    held.hasEnded = true
    count(held, -held.bytes)
    if (held.hasPlace) places.add(held.capability, -1)
    serve()
  }

  function open(reply: FastifyReply, capability: string, isAnswer: boolean): Reservation {
    const response = reply.raw
    const held: Held = {
      capability,
      network: networkOf(reply.request),
      bytes: 0,
      movedAt: ++moves,
      isAnswer,
      hasPlace: false,
      isReading: false,
      hasLeft: false,
      hasEnded: false,
      close: () => response.destroy(),
    }
    holds.add(held)
    const reservation: Reservation = {
      async reserve(wanted) {
        if (held.hasLeft) return false
        // A single answer above the limit is that of a large plan, and has all of the room.
        const bytes = Math.min(wanted, limits.perCapability)
        setBytes(held, 0)
        if (fullFor({ held, bytes }) !== null) return wait(held, bytes)
        admit(held, bytes)
        return true
      },
      resize: (bytes) => setBytes(held, bytes),
      waitTurn: turns,
      async whileReading(read) {
        held.isReading = true
        try {
          return await read()
        } finally {
          held.isReading = false
          if (held.hasLeft) end(held)
        }
      },
      progressed() {
        held.movedAt = ++moves
      },
      release: () => end(held),
    }
    byRequest.set(reply.request, reservation)
    if (response.destroyed) end(held)
    else response.once('close', reservation.release)
    return reservation
  }

  return {
    async forResponse(reply, capability) {
      const reservation = open(reply, capability, true)
      await reservation.reserve(0)
      return reservation
    },
    forStream: (reply, capability) => open(reply, capability, false),
    reservationOf: (request) => byRequest.get(request),
    reservedBytes: () => inAll,
    waiting: () => waiting.length,
    closedReaders: () => closed,
  }
}

/** Resolves one caller in each turn of the event loop, in their order. */
function createTurns(): () => Promise<void> {
  const queue: (() => void)[] = []
  let isTaken = false
  function next(): void {
    const resume = queue.shift()
    isTaken = resume !== undefined
    if (!resume) return
    setImmediate(next)
    resume()
  }
  return async () => {
    if (isTaken) return new Promise((resolve) => queue.push(resolve))
    isTaken = true
    setImmediate(next)
  }
}

/** Counts by name; a name that counts nothing is not kept. */
function createCounts() {
  const counts = new Map<string, number>()
  return {
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: number): void {
      const now = (counts.get(name) ?? 0) + change
      if (now === 0) counts.delete(name)
      else counts.set(name, now)
    },
    largest(): string {
      let [largest, most] = ['', -1]
      for (const [name, count] of counts) if (count > most) [largest, most] = [name, count]
      return largest
    },
  }
}
