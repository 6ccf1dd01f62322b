/**
 * Pings that reach one monitor at the same time are recorded together: one statement counts them and stores their
 * times, so the row of the monitor, which all of its senders change, changes once. Nearly every ping changes
 * nothing else. One that does, such as the first after a lateness, is refused by that statement and takes a turn.
 */
import { coalesce } from '../db/coalesce.ts'
import { attempt, type Db } from '../db/db.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { MonitorFacts } from './jobs.ts'
import { acceptPings, RECENT_HEARTBEATS } from './store.ts'
import type { Turning } from './turning.ts'

/** More times than a monitor stores would be cut off. */
const PINGS_TOGETHER = Math.min(64, RECENT_HEARTBEATS)

type Waiting = {
  time: number
  resolve: (isRecorded: boolean) => void
  reject: (error: Error) => void
}

/** Records a ping durably, or returns false if the monitor refuses it. A first use seals the delivery. */
export type Pinging = (job: MonitorFacts, time: number) => Promise<boolean>

export function createPinging({
  db,
  sealing,
  turning,
}: {
  db: Db
  sealing: Sealing
  turning: Pick<Turning, 'beats'>
}): Pinging {
  /** By the facts that are remembered, which are others after the token was replaced. */
  const waiting = new Map<MonitorFacts, Waiting[]>()

  function recordAll(job: MonitorFacts): void {
    const together = waiting.get(job)
    waiting.delete(job)
    if (together) void record(job, together)
  }

  async function record(job: MonitorFacts, together: Waiting[]): Promise<void> {
    const times = together.map(({ time }) => time)
    try {
      const isRecorded =
        (await isAccepted(job, times)) ||
        (await turning.beats(job, { kind: 'pings', times, rid: null, isRun: false }))
      // Not all of them are left, or one came too late, but the monitor may accept some.
      if (!isRecorded && together.length > 1) for (const one of together) await record(job, [one])
      else for (const { resolve } of together) resolve(isRecorded)
    } catch (error) {
      for (const { reject } of together) reject(error as Error)
    }
  }

  async function isAccepted(job: MonitorFacts, times: readonly number[]): Promise<boolean> {
    const { publicId } = job
    const done = await attempt(
      db.write({
        lockKey: publicId,
        statements: {
          pings: acceptPings(job, times),
          seal: sealing.statements(publicId, times[0] ?? 0),
        },
      }),
    )
    if ('rows' in done) sealing.sealed(publicId)
    return 'rows' in done
  }

  const schedule = coalesce(() => {
    for (const job of [...waiting.keys()]) recordAll(job)
  })

  return (job, time) =>
    new Promise((resolve, reject) => {
      const one = { time, resolve, reject }
      const together = waiting.get(job)
      if (!together) waiting.set(job, [one])
      else if (together.push(one) >= PINGS_TOGETHER) recordAll(job)
      schedule()
    })
}
