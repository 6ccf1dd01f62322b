/** Turns for work on the one thread: a part of it at a time, and every key in turn, so that nobody waits for all. */
import { problem } from './errors.ts'
import { rateLimited } from './limits.ts'

/** Runs a part when it is the turn of its key. Small requests are answered between two parts. */
export type Turns = <T>(key: string, part: () => Promise<T>) => Promise<T>

export function createTurns(): Turns {
  /** By key the parts that wait, the key whose turn is next first. */
  const waiting = new Map<string, (() => Promise<void>)[]>()
  let isRunning = false

  function next(): void {
    const [first] = waiting
    if (isRunning || !first) return
    const [key, parts] = first
    const run = parts.shift()
    waiting.delete(key)
    if (parts.length > 0) waiting.set(key, parts)
    isRunning = true
    void run?.().finally(() =>
      setImmediate(() => {
        isRunning = false
        next()
      }),
    )
  }

  return (key, part) =>
    new Promise((resolve, reject) => {
      const parts = waiting.get(key) ?? []
      waiting.set(key, parts)
      parts.push(() => part().then(resolve, reject))
      next()
    })
}

/** How much work of a capability runs at once: for a person who types, or a page and a program. */
const MAX_EACH = 5
/** All work together. Each needs little memory, but slows down all others. */
const MAX_IN_ALL = 256
const RETRY_SECONDS = 5

/** Runs a slice of the work when it is its turn. @throws Problem once the client has disconnected. */
export type RunSlice = <T>(part: () => Promise<T>) => Promise<T>

export type Scheduler = ReturnType<typeof createScheduler>

/** Long work on the one store, such as searches: it runs in slices, and a capability that asks often delays itself. */
export function createScheduler() {
  const turns = createTurns()
  const running = new Map<string, number>()
  let inAll = 0

  return {
    /** How much work runs now, for the metrics. */
    count: (): number => inAll,
    /** @throws Problem `rate limited` if too much work runs. */
    async run<T>(
      key: string,
      signal: AbortSignal,
      work: (slice: RunSlice) => Promise<T>,
    ): Promise<T> {
      const before = running.get(key) ?? 0
      if (before >= MAX_EACH || inAll >= MAX_IN_ALL) throw rateLimited(RETRY_SECONDS)
      running.set(key, before + 1)
      inAll++
      try {
        return await work((part) =>
          turns(key, async () => {
            // Nobody reads the answer.
            if (signal.aborted) throw problem('request timeout')
            return part()
          }),
        )
      } finally {
        inAll--
        const left = (running.get(key) ?? 1) - 1
        if (left > 0) running.set(key, left)
        else running.delete(key)
      }
    },
  }
}
