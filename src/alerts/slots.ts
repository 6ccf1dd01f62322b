/** Slots of something scarce: a bounded number of works runs at a time, and whoever waits is served fairly. */
import { OutboundError } from './outbound-rules.ts'

export type SlotLimits = {
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
export function createSlots({ concurrent, ofOne = concurrent, waiting: maxWaiting }: SlotLimits) {
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

export type Slots = ReturnType<typeof createSlots>
