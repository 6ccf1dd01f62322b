/** Reads on a few connections: queries that arrive while all are busy share a pipeline. */
import { coalesce } from '../coalesce.ts'
import { type Row, StoreAway, type Value } from '../db.ts'
import type { Query } from './connection.ts'
import type { Slot } from './sessions.ts'

type Job = Query & { resolve: (rows: Row[]) => void; reject: (error: Error) => void; tries: number }

/** Few, so that few queries wait behind a slow one. */
const QUERIES_IN_PIPELINE = 8
/** With more waiting reads than this, a read is refused: its caller would time out before its turn. */
const MAX_WAITING = 10_000
/** A read changes nothing, so it may run again when its connection was lost. */
const MAX_TRIES = 2

export function createReader(slots: Slot[]) {
  const idleSlots = [...slots]
  let waiting: Job[] = []
  const schedule = coalesce(dispatch)
  const wakeups: (() => void)[] = []

  function dispatch(): void {
    while (waiting.length > 0 && idleSlots.length > 0) {
      const fair = Math.ceil(waiting.length / idleSlots.length)
      const pipeline = waiting.slice(0, Math.min(fair, QUERIES_IN_PIPELINE))
      waiting = waiting.slice(pipeline.length)
      const slot = idleSlots.pop() as Slot
      void run(slot, pipeline).finally(() => {
        idleSlots.push(slot)
        dispatch()
      })
    }
    if (waiting.length > 0 || idleSlots.length < slots.length) return
    for (const wake of wakeups.splice(0)) wake()
  }

  async function run(slot: Slot, pipeline: Job[]): Promise<void> {
    let jobs = pipeline
    while (jobs.length > 0) {
      const connection = await slot.connection().catch((error: Error) => error)
      if (connection instanceof Error) {
        for (const job of jobs) job.reject(connection)
        return
      }
      const { results, failure } = await connection.send(jobs)
      for (const [i, { rows, error }] of results.entries()) {
        if (error) jobs[i]?.reject(error)
        else jobs[i]?.resolve(rows)
      }
      jobs = jobs.slice(results.length)
      if (!failure) return
      const [failed] = jobs
      // The queries behind the failed one did not run. Only the failed one gets the error.
      if (!failed) return
      if (failure.isStale) slot.drop()
      if (!(failure.isLost || failure.isStale) || ++failed.tries >= MAX_TRIES) {
        failed.reject(failure.error)
        jobs = jobs.slice(1)
      }
    }
  }

  return {
    read: (text: string, values: Value[]): Promise<Row[]> =>
      new Promise((resolve, reject) => {
        if (waiting.length >= MAX_WAITING) {
          return reject(new StoreAway('too many reads are waiting'))
        }
        waiting.push({ text, values, resolve, reject, tries: 0 })
        schedule()
      }),
    async idle(): Promise<void> {
      while (waiting.length > 0 || idleSlots.length < slots.length) {
        await new Promise<void>((resume) => wakeups.push(resume))
      }
    },
    async end(): Promise<void> {
      await Promise.all(slots.map((slot) => slot.end()))
    },
  }
}
