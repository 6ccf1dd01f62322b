/**
 * One seeded scheduler for everything that happens: time passes only between its events, and events that are
 * due at the same time run in an order that the seed decides. What runs belongs to an owner; an owner that is
 * dead runs nothing any more, so that killing a process is one assignment.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createRandom } from '../../support/random.ts'
import type { MachineClock } from './clocks.ts'
import { realTurn } from './real.ts'

/** A process of the service, or a timer's owner in general. Null stands for the world outside. */
export type Owner = { isDead: boolean; clock?: MachineClock }

type Event = { at: number; tie: number; owner: Owner | null; run: () => void; isCancelled: boolean }

export type Cancel = () => void

export type Scheduler = ReturnType<typeof createScheduler>

/**
 * Runs the ticks and microtasks that an event has left, and those that they leave, as Node does after each call of
 * its loop. A turn of the loop does the same, and takes longer than most events.
 */
const settle = (process as unknown as { _tickCallback(): void })._tickCallback

/** Turns of the loop in between let the machine clean up. */
const EVENTS_PER_TURN = 256

const NOTHING = (): void => undefined

/** The clocks of two machines differ by less. */
const CLOCKS_APART_MS = 5_000
const STARTED_AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

export function createScheduler(seed: number, eventsPerTurn = EVENTS_PER_TURN) {
  const random = createRandom(seed)
  const events: Event[] = []
  let elapsed = 0
  let jumped = 0
  /** Times that clocks showed before they were set back to the first of each. */
  const takenBack: [from: number, to: number][] = []
  let jumpedAt = Number.NEGATIVE_INFINITY
  // Follows each function through its awaits, so that what continues belongs to whoever began it.
  const owners = new AsyncLocalStorage<Owner | null>()
  const owner = (): Owner | null => owners.getStore() ?? null
  /** Runs a function as an owner. Made once for each: entering an `AsyncLocalStorage` anew copies its frame. */
  const entries = new Map<Owner | null, <T>(work: () => T) => T>()

  function entryOf(belongsTo: Owner | null): <T>(work: () => T) => T {
    const known = entries.get(belongsTo)
    if (known) return known
    const entry = owners.run(belongsTo, () => AsyncLocalStorage.snapshot())
    entries.set(belongsTo, entry)
    return entry
  }

  const scheduler = {
    random,
    /** Milliseconds since the start of the run. */
    elapsed: () => elapsed,
    /** Unix milliseconds, as this clock shows them, or else that of the owner. Without one the time is right. */
    wallNow: (clock: MachineClock | undefined = owner()?.clock): number =>
      Math.floor(STARTED_AT + elapsed + jumped + (clock?.(elapsed) ?? 0)),
    /** Sets all clocks. */
    jump(ms: number): void {
      const shown = STARTED_AT + elapsed + jumped
      if (ms < 0) takenBack.push([shown + ms, shown])
      jumped += ms
      jumpedAt = elapsed
    },
    /** Undoes all jumps. */
    unjump: (): void => scheduler.jump(-jumped),
    /** Whether a clock that was ahead has shown this time, and was set back. */
    wasTakenBack: (unixMs: number): boolean =>
      takenBack.some(
        ([from, to]) => unixMs > from - CLOCKS_APART_MS && unixMs <= to + CLOCKS_APART_MS,
      ),
    /** When the clocks jumped last, in milliseconds of the run. */
    jumpedAt: () => jumpedAt,
    /** Runs `run` after this time, for the owner that runs now or for another. */
    after(ms: number, run: () => void, belongsTo = owner()): Cancel {
      const wait = Number.isFinite(ms) && ms > 0 ? ms : 0
      const event: Event = {
        at: elapsed + wait,
        tie: random.next(),
        owner: belongsTo,
        run,
        isCancelled: false,
      }
      if (!belongsTo?.isDead) push(events, event)
      return () => {
        event.isCancelled = true
        event.run = NOTHING
      }
    },
    /** Lets go of what a dead owner would have done, so that it does not stay in memory until then. */
    forget(dead: Owner): void {
      const others = events.filter((event) => event.owner !== dead && !event.isCancelled)
      events.length = 0
      for (const event of others) push(events, event)
      entries.delete(dead)
    },
    sleep: (ms: number): Promise<void> =>
      new Promise((resolve) => void scheduler.after(ms, resolve)),
    /** The owner whose code runs now. */
    owner,
    /** Runs a function as this owner. */
    as: <T>(belongsTo: Owner | null, work: () => T): T => entryOf(belongsTo)(work),
    /** Runs events until `isOver`, or none is left. @returns the number of events. */
    async run(isOver: () => boolean, maxEvents: number): Promise<number> {
      let count = 0
      let isEmpty = false
      while (!isEmpty && count < maxEvents && !isOver()) {
        await new Promise<void>((resolve, reject) =>
          realTurn(() => {
            try {
              const until = Math.min(maxEvents, count + eventsPerTurn)
              while (!isEmpty && count < until && !isOver()) isEmpty = !runNext()
              resolve()
            } catch (error) {
              reject(error)
            }
          }),
        )
      }
      return count

      function runNext(): boolean {
        const event = pop(events)
        if (!event) return false
        if (event.isCancelled || event.owner?.isDead) return true
        count++
        elapsed = Math.max(elapsed, event.at)
        entryOf(event.owner)(event.run)
        settle()
        return true
      }
    },
  }
  return scheduler
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.tie < b.tie)

/** A binary heap. */
function push(heap: Event[], event: Event): void {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent] as Event
    if (!isBefore(event, above)) break
    heap[at] = above
    at = parent
  }
  heap[at] = event
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (heap.length === 0 || !last) return first
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++
    const below = heap[child] as Event
    if (!isBefore(below, last)) break
    heap[at] = below
    at = child
  }
  heap[at] = last
  return first
}
