/** Turns at something scarce: a bounded number runs at a time, and whoever waits is served fairly. */
import { LRUCache } from 'lru-cache'
import type { SteadyClock } from '../lib/clock.ts'
import { OutboundError } from './outbound-rules.ts'

/** After this many consecutive calls without an answer, calls to the host pause. */
const MAX_FAILURES = 5
const PAUSE_MS = 30_000
/** Hosts whose failures are remembered. A forgotten host starts without failures. */
const MAX_HOSTS = 10_000

export type TurnLimits = {
  /** How many run at once. */
  concurrent: number
  /** How many of them for one `from`. Default: all. */
  ofOne?: number
  /** Further callers would only time out in the queue. */
  waiting: number
}

/** `from` names who causes the work: those who wait take turns by it. */
export type Turn = { from: string; signal: AbortSignal }

/** cockatiel's bulkhead and p-queue do not fit: they serve callers in their order, whoever they are. */
export function createTurns({ concurrent, ofOne = concurrent, waiting: maxWaiting }: TurnLimits) {
  const running = new Map<string, number>()
  /** Those that wait, by `from`. The first of the map that may run has the next turn. */
  const queues = new Map<string, (() => void)[]>()
  let runningCount = 0
  let waitingCount = 0

  const mayRun = (from: string): boolean =>
    runningCount < concurrent && (running.get(from) ?? 0) < ofOne

  function begin(from: string): void {
    runningCount++
    running.set(from, (running.get(from) ?? 0) + 1)
  }

  function end(from: string): void {
    runningCount--
    const left = (running.get(from) ?? 1) - 1
    if (left === 0) running.delete(from)
    else running.set(from, left)
    const next = [...queues.keys()].find(mayRun)
    const [go, ...others] = queues.get(next ?? '') ?? []
    if (next === undefined || !go) return
    leaveQueue(next, go)
    // Whoever had a turn goes to the end with what still waits.
    if (queues.delete(next)) queues.set(next, others)
    begin(next)
    go()
  }

  function leaveQueue(from: string, go: () => void): void {
    const left = (queues.get(from) ?? []).filter((other) => other !== go)
    if (left.length > 0) queues.set(from, left)
    else queues.delete(from)
    waitingCount--
  }

  async function wait({ from, signal }: Turn): Promise<void> {
    signal.throwIfAborted()
    if (waitingCount >= maxWaiting) throw new OutboundError('too busy')
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = (): void => {
        leaveQueue(from, go)
        reject(signal.reason)
      }
      queues.set(from, [...(queues.get(from) ?? []), go])
      waitingCount++
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  return {
    /** Runs `work` at its turn, unless `signal` ends the wait. @throws OutboundError if too many wait. */
    async use<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
      if (mayRun(turn.from)) begin(turn.from)
      else await wait(turn)
      try {
        return await work()
      } finally {
        end(turn.from)
      }
    },
  }
}

/** @param pauses whether calls to a host that is down pause. Not where a stranger could pause a host for others. */
export type HostLimits = TurnLimits & { pauses: boolean }

type Host = {
  turns: ReturnType<typeof createTurns>
  failures: number
  /** By the monotonic clock, so that a clock that is set back prolongs no pause. */
  pausedUntil: number
}

/**
 * Turns at each host, and a pause for a host that is down.
 * @param isOutage tells whether an error means that the server did not answer.
 */
export function createHosts({
  clock,
  limits,
  isOutage,
}: {
  clock: SteadyClock
  limits: HostLimits
  isOutage: (error: unknown) => boolean
}) {
  const hosts = new LRUCache<string, Host>({ maxSize: MAX_HOSTS, sizeCalculation: () => 1 })
  const newHost = (): Host => ({ turns: createTurns(limits), failures: 0, pausedUntil: 0 })

  return {
    /** Runs `work` at the host's turn. @throws OutboundError if the host is paused or too many calls wait. */
    async use<T>(name: string, turn: Turn, work: () => Promise<T>): Promise<T> {
      const host = hosts.get(name) ?? newHost()
      hosts.set(name, host)
      if (clock.monotonic() < host.pausedUntil) throw new OutboundError('paused')
      return host.turns.use(turn, async () => {
        try {
          const result = await work()
          host.failures = 0
          return result
        } catch (error) {
          host.failures = isOutage(error) ? host.failures + 1 : 0
          // The count is not reset, so one failure after the pause starts the next pause.
          if (limits.pauses && host.failures >= MAX_FAILURES) {
            host.pausedUntil = clock.monotonic() + PAUSE_MS
          }
          throw error
        }
      })
    },
  }
}
