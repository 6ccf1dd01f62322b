/**
 * A fair scheduler for long work on one thread and one store, such as searches. Work runs in slices, one
 * slice at a time, round robin over the capabilities. So it waits for a slice of each other capability
 * and never for all of their work, and a capability that asks often only delays itself.
 */
import { problem } from './errors.ts'
import { rateLimited } from './limits.ts'

/** How much work of a capability may wait: for a person who types, or a page and a program at once. */
const MAX_WAITING_EACH = 4
/** Capabilities with work at the same time. Each needs little memory, but slows down all others. */
const MAX_RUNNING = 256
/** Work that has waited this long is refused, and its client tries again. */
const MAX_WAIT_MS = 10_000
const RETRY_SECONDS = 5

/** How work ended, for the metrics: with a result or error, after its client disconnected, or refused. */
export type WorkOutcome = 'done' | 'gone' | 'refused'

/** Runs a part of the work when it is its turn. @throws Problem once the client has disconnected. */
export type RunSlice = <T>(part: () => Promise<T>) => Promise<T>

export type FairScheduler = {
  /**
   * Runs work of a capability; the work runs its slices through `slice`.
   * @throws Problem `rate limited` if too much work waits, or this has waited too long.
   */
  run<T>(key: string, signal: AbortSignal, work: (slice: RunSlice) => Promise<T>): Promise<T>
  /** How much work runs and waits now, for the metrics. */
  count(): { running: number; waiting: number }
}

type Waiting = { start(): void }

export function createFairScheduler({
  waitMs = MAX_WAIT_MS,
  running: maxRunning = MAX_RUNNING,
  onEnded = () => {},
}: {
  waitMs?: number
  running?: number
  onEnded?: (outcome: WorkOutcome) => void
} = {}): FairScheduler {
  /** By capability, the work that waits for the running one. */
  const queues = new Map<string, Waiting[]>()
  const slices: (() => Promise<void>)[] = []
  let waiting = 0
  let isSlicing = false

  function next(): void {
    const run = isSlicing ? undefined : slices.shift()
    if (!run) return
    isSlicing = true
    void run().finally(() => {
      // Lets other requests run between two slices, even if the store answers at once.
      setImmediate(() => {
        isSlicing = false
        next()
      })
    })
  }

  const sliceFor =
    (signal: AbortSignal): RunSlice =>
    (part) =>
      new Promise((resolve, reject) => {
        slices.push(async () => {
          if (signal.aborted) return reject(clientGone())
          await part().then(resolve, reject)
        })
        next()
      })

  /** Resolves when this work may run. */
  function admission(key: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(clientGone())
    const queue = queues.get(key)
    if (!queue) {
      if (queues.size >= maxRunning) return Promise.reject(rateLimited(RETRY_SECONDS))
      queues.set(key, [])
      return Promise.resolve()
    }
    if (queue.length >= MAX_WAITING_EACH) return Promise.reject(rateLimited(RETRY_SECONDS))
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting--
        clearTimeout(timer)
        signal.removeEventListener('abort', onGone)
      }
      const refuse = (error: Error): void => {
        leave()
        queue.splice(queue.indexOf(waiter), 1)
        reject(error)
      }
      const waiter: Waiting = {
        start() {
          leave()
          resolve()
        },
      }
      const onGone = (): void => refuse(clientGone())
      const timer = setTimeout(() => refuse(rateLimited(RETRY_SECONDS)), waitMs)
      signal.addEventListener('abort', onGone)
      queue.push(waiter)
      waiting++
    })
  }

  function release(key: string): void {
    const first = queues.get(key)?.shift()
    if (first) first.start()
    else queues.delete(key)
  }

  return {
    count: () => ({ running: queues.size, waiting }),
    async run(key, signal, work) {
      try {
        await admission(key, signal)
      } catch (error) {
        onEnded(signal.aborted ? 'gone' : 'refused')
        throw error
      }
      try {
        return await work(sliceFor(signal))
      } finally {
        release(key)
        onEnded(signal.aborted ? 'gone' : 'done')
      }
    },
  }
}

/** The client has disconnected, so nobody reads this response. */
const clientGone = () => problem('request timeout')
