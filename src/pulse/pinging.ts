/**
 * Pings that reach one monitor while its last turn is stored are recorded together: its row, which all of its senders
 * change, changes once.
 */
import type { MonitorFacts } from './jobs.ts'
import type { Turning } from './turning.ts'

/** Few enough that a unit of them is small. */
const PINGS_TOGETHER = 64

type Waiting = {
  time: number
  resolve: (isRecorded: boolean) => void
  reject: (error: Error) => void
}

/** Records a ping durably, or returns false if the monitor refuses it. A first use seals the delivery. */
export type Pinging = (job: MonitorFacts, time: number) => Promise<boolean>

export function createPinging(turning: Pick<Turning, 'beats'>): Pinging {
  /** By the facts that are remembered, which are others after the token was replaced. */
  const waiting = new Map<MonitorFacts, Waiting[]>()
  const busy = new Set<MonitorFacts>()

  async function recordAll(job: MonitorFacts): Promise<void> {
    busy.add(job)
    for (;;) {
      const all = waiting.get(job) ?? []
      waiting.delete(job)
      if (all.length === 0) break
      while (all.length > 0) await record(job, all.splice(0, PINGS_TOGETHER))
    }
    busy.delete(job)
  }

  async function record(job: MonitorFacts, together: Waiting[]): Promise<void> {
    const times = together.map(({ time }) => time)
    try {
      const isRecorded = await turning.beats(job, { kind: 'pings', times, rid: null, isRun: false })
      // Not all of them are left, or one came too late, but the monitor may accept some.
      if (!isRecorded && together.length > 1) for (const one of together) await record(job, [one])
      else for (const { resolve } of together) resolve(isRecorded)
    } catch (error) {
      for (const { reject } of together) reject(error as Error)
    }
  }

  return (job, time) =>
    new Promise((resolve, reject) => {
      const one = { time, resolve, reject }
      const together = waiting.get(job)
      if (together) together.push(one)
      else waiting.set(job, [one])
      if (!busy.has(job)) void recordAll(job)
    })
}
