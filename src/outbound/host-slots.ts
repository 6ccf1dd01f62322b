/**
 * Limits concurrent calls to one host, is fair to those who cause them, and pauses calls to a host that is
 * down. cockatiel's bulkhead and breaker do not fit: its queue keeps aborted callers, and its pauses use the
 * wall clock.
 */
import { LRUCache } from 'lru-cache'
import type { SteadyClock } from '../lib/clock.ts'
import { OutboundError } from './error.ts'

/** After this many consecutive calls without an answer, calls to the host pause. */
const MAX_FAILURES = 5
const PAUSE_MS = 30_000
/** Hosts whose failures are remembered. A forgotten host starts without failures. */
const MAX_HOSTS = 10_000

export type HostLimits = {
  /** Calls to one host at once. */
  concurrent: number
  /** Further callers would only time out in the queue. */
  waiting: number
  /** Whether calls to a host that is down pause. Not where a stranger could pause a host for others. */
  pauses: boolean
}

/** `from` names who causes the call: those who wait for a host take turns by it. */
export type Call = { host: string; from: string; signal: AbortSignal }

export type HostSlots = {
  /**
   * Runs `work` when the host has a slot, unless `signal` ends the wait.
   * @throws OutboundError if the host is paused or too many calls wait.
   */
  use<T>(call: Call, work: () => Promise<T>): Promise<T>
}

type Host = {
  running: number
  /** The callers that wait, by who caused the call. The first of the map has the next turn. */
  waiting: Map<string, (() => void)[]>
  waitingCount: number
  failures: number
  /** By the monotonic clock, so that a clock that is set back prolongs no pause. */
  pausedUntil: number
}

/** @param isOutage tells whether an error means that the server did not answer. */
export function createHostSlots({
  clock,
  limits,
  isOutage,
}: {
  clock: SteadyClock
  limits: HostLimits
  isOutage: (error: unknown) => boolean
}): HostSlots {
  const hosts = new LRUCache<string, Host>({ maxSize: MAX_HOSTS, sizeCalculation: () => 1 })

  async function enter(host: Host, { from, signal }: Call): Promise<void> {
    if (host.running < limits.concurrent) {
      host.running++
      return
    }
    if (host.waitingCount >= limits.waiting) throw new OutboundError('too busy')
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = (): void => {
        leaveQueue(host, from, go)
        reject(signal.reason)
      }
      enterQueue(host, from, go)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function leave(host: Host): void {
    // The slot passes to the next caller.
    const go = takeNext(host)
    if (go) go()
    else host.running--
  }

  return {
    async use(call, work) {
      const host = hosts.get(call.host) ?? newHost()
      hosts.set(call.host, host)
      if (clock.monotonic() < host.pausedUntil) throw new OutboundError('paused')
      await enter(host, call)
      try {
        const result = await work()
        host.failures = 0
        return result
      } catch (error) {
        if (isOutage(error)) host.failures++
        else host.failures = 0
        // The count is not reset, so one failure after the pause starts the next pause.
        if (limits.pauses && host.failures >= MAX_FAILURES)
          host.pausedUntil = clock.monotonic() + PAUSE_MS
        throw error
      } finally {
        leave(host)
      }
    },
  }
}

const newHost = (): Host => ({
  running: 0,
  waiting: new Map(),
  waitingCount: 0,
  failures: 0,
  pausedUntil: 0,
})

function enterQueue(host: Host, from: string, go: () => void): void {
  const queue = host.waiting.get(from)
  if (queue) queue.push(go)
  else host.waiting.set(from, [go])
  host.waitingCount++
}

function leaveQueue(host: Host, from: string, go: () => void): void {
  const queue = host.waiting.get(from) ?? []
  queue.splice(queue.indexOf(go), 1)
  if (queue.length === 0) host.waiting.delete(from)
  host.waitingCount--
}

/** The first caller of whoever has the turn, who then goes to the end. */
function takeNext(host: Host): (() => void) | undefined {
  const [turn] = host.waiting
  if (!turn) return undefined
  const [from, queue] = turn
  const go = queue.shift()
  host.waiting.delete(from)
  if (queue.length > 0) host.waiting.set(from, queue)
  host.waitingCount--
  return go
}
