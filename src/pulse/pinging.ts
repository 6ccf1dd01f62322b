/**
 * Pings that reach one monitor at the same time are recorded together: one statement counts them and stores their
 * times, so the row of the monitor, which all of its senders change, changes once. Nearly every ping changes
 * nothing else. One that does, such as the first after a lateness, is refused by that statement and takes a turn.
 * Those that fill the row take two statements more, so it is foreseen which do.
 */
import { coalesce } from '../db/coalesce.ts'
import { attempt, type Db, type Row, type Statement } from '../db/db.ts'
import type { Sealing } from '../payment/sealing.ts'
import { acceptAndFile, acceptPings, PINGS_TOGETHER } from './accepting.ts'
import { createFilling } from './filling.ts'
import type { MonitorFacts } from './jobs.ts'
import type { Turning } from './turning.ts'

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
  const filling = createFilling()

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
    const { isFilled, filed } = filling.add(job, times.length)
    // Pings of another instance may have filled the row, so a refusal does not say that more has changed.
    if (!isFilled && (await written(job, times, { pings: acceptPings(job, times) }))) return true
    const rows = await written(job, times, acceptAndFile(job, times))
    filed(rows && Number(rows[0]?.loose))
    return rows !== null
  }

  /** What `pings` returned, or null if it refused. */
  async function written(
    { publicId }: MonitorFacts,
    times: readonly number[],
    statements: { pings: Statement } & Record<string, Statement>,
  ): Promise<Row[] | null> {
    const seal = sealing.statements(publicId, times[0] ?? 0)
    const done = await attempt(
      db.write<string>({ lockKey: publicId, statements: { ...statements, seal } }),
    )
    if (!('rows' in done)) return null
    sealing.sealed(publicId)
    return done.rows.pings ?? []
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
