/**
 * Long work that shares one thread and one store, such as searches, takes turns: one slice at a time,
 * each capability's work after the others' slices. So the work of one waits for a slice of each other,
 * never for all of their work, and whoever asks again and again waits for himself.
 */
import { problem } from './errors.ts'
import { rateLimited } from './limits.ts'

/** Those of one capability that wait for the one that runs: a person who types, or a page and a program. */
const WAITING_EACH = 4
/** How many capabilities may have work: what each holds is small, and each slows all others down. */
const RUNNING = 256
/** Whoever waits longer for the work before his own has better ask again. */
const WAIT_MS = 10_000
const RETRY_SECONDS = 5

/** How a work ended, for the metrics: with an answer or an error, without its client, or refused. */
export type WorkOutcome = 'done' | 'gone' | 'refused'

/** Runs a part of a work when it is its turn. @throws Problem once the client has gone. */
export type RunSlice = <T>(part: () => Promise<T>) => Promise<T>

export type FairScheduler = {
  /**
   * Runs work of a capability, given what runs its slices.
   * @throws Problem `rate limited` where too many wait, or this one has waited too long.
   */
  run<T>(key: string, gone: AbortSignal, work: (slice: RunSlice) => Promise<T>): Promise<T>
  /** What runs and waits now, for the metrics. */
  count(): { running: number; waiting: number }
}

type Waiting = { start(): void }

export function createFairScheduler({
  waitMs = WAIT_MS,
  running: mostRunning = RUNNING,
  onEnded = () => {},
}: {
  waitMs?: number
  running?: number
  onEnded?: (outcome: WorkOutcome) => void
} = {}): FairScheduler {
  /** By capability, whoever waits for the one that runs. */
  const queues = new Map<string, Waiting[]>()
  const slices: (() => Promise<void>)[] = []
  let waiting = 0
  let isSlicing = false

  function next(): void {
    const run = isSlicing ? undefined : slices.shift()
    if (!run) return
    isSlicing = true
    void run().finally(() => {
      // Requests come in between two slices, however fast the store answers.
      setImmediate(() => {
        isSlicing = false
        next()
      })
    })
  }

  const sliceFor =
    (gone: AbortSignal): RunSlice =>
    (part) =>
      new Promise((resolve, reject) => {
        slices.push(async () => {
          if (gone.aborted) return reject(clientGone())
          await part().then(resolve, reject)
        })
        next()
      })

  /** Resolves when this work may run. */
  function admission(key: string, gone: AbortSignal): Promise<void> {
    if (gone.aborted) return Promise.reject(clientGone())
    const queue = queues.get(key)
    if (!queue) {
      if (queues.size >= mostRunning) return Promise.reject(rateLimited(RETRY_SECONDS))
      queues.set(key, [])
      return Promise.resolve()
    }
    if (queue.length >= WAITING_EACH) return Promise.reject(rateLimited(RETRY_SECONDS))
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting--
        clearTimeout(timer)
        gone.removeEventListener('abort', onGone)
      }
      const refuse = (error: Error): void => {
        leave()
        queue.splice(queue.indexOf(one), 1)
        reject(error)
      }
      const one: Waiting = {
        start() {
          leave()
          resolve()
        },
      }
      const onGone = (): void => refuse(clientGone())
      const timer = setTimeout(() => refuse(rateLimited(RETRY_SECONDS)), waitMs)
      gone.addEventListener('abort', onGone)
      queue.push(one)
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
    async run(key, gone, work) {
      try {
        await admission(key, gone)
      } catch (error) {
        onEnded(gone.aborted ? 'gone' : 'refused')
        throw error
      }
      try {
        return await work(sliceFor(gone))
      } finally {
        release(key)
        onEnded(gone.aborted ? 'gone' : 'done')
      }
    },
  }
}

/** Nobody reads this answer. */
const clientGone = () => problem('request timeout')
