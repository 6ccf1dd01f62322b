/** The responses that wait for memory. Each waits for a limited time, and only a limited number may wait. */
import { rateLimited } from './limits.ts'
import { createTally, type Use } from './response-usage.ts'

/** How many responses of one capability, and of one client network, may wait. */
const MAX_WAITING = { perCapability: 32, perNetwork: 128 }
/** A waiting response checks this often whether a slow reader must be disconnected. */
const CHECK_MS = 2_000
/** After this many checks, a waiting response is refused. */
const MAX_CHECKS = 5
const RETRY_SECONDS = 2

/** A response that waits for this many bytes. */
export type Waiting<Entry> = {
  entry: Entry
  bytes: number
  /** The value of the progress counter when it began to wait. */
  since: number
}

export type Waiter<Entry> = Waiting<Entry> & {
  /** Ends the wait: the bytes were reserved, or the client has disconnected. */
  end(isAdmitted: boolean): void
}

export type ResponseQueue<Entry> = {
  /**
   * Waits for `end`, and resolves to its argument. A stream waits without a time limit.
   * @throws Problem `rate limited` if too many wait already, or this one has waited too long.
   */
  wait(waiting: Waiting<Entry>): Promise<boolean>
  /** All waiting responses, in the order in which they came. */
  waiters(): ReadonlySet<Waiter<Entry>>
}

export function createResponseQueue<Entry extends Use>(options: {
  /** Called at each check of a waiting response. The last one comes before the refusal. */
  onCheck(waiting: Waiting<Entry>, isLast: boolean): void
  /** Called when a response has waited too long. */
  onRefused(entry: Entry): void
}): ResponseQueue<Entry> {
  const byCapability = createTally()
  const byNetwork = createTally()
  const waiters = new Set<Waiter<Entry>>()

  function isFull({ capability, network }: Entry): boolean {
    return (
      byCapability.of(capability) >= MAX_WAITING.perCapability ||
      byNetwork.of(network) >= MAX_WAITING.perNetwork
    )
  }

  function count({ needsSlot, capability, network }: Entry, change: 1 | -1): void {
    if (!needsSlot) return
    byCapability.add(capability, change)
    byNetwork.add(network, change)
  }

  return {
    wait(waiting) {
      const { entry } = waiting
      if (entry.needsSlot && isFull(entry)) throw rateLimited(RETRY_SECONDS)
      const { promise, resolve, reject } = Promise.withResolvers<boolean>()
      let checks = 0
      const timer = setInterval(() => {
        checks++
        if (!entry.needsSlot || checks < MAX_CHECKS) {
          return options.onCheck(waiting, checks === MAX_CHECKS - 1)
        }
        remove()
        options.onRefused(entry)
        reject(rateLimited(RETRY_SECONDS))
      }, CHECK_MS)
      const waiter: Waiter<Entry> = {
        ...waiting,
        end(isAdmitted) {
          remove()
          resolve(isAdmitted)
        },
      }
      function remove(): void {
        clearInterval(timer)
        waiters.delete(waiter)
        count(entry, -1)
      }
      count(entry, 1)
      waiters.add(waiter)
      return promise
    },
    waiters: () => waiters,
  }
}
