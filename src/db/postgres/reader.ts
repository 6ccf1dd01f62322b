/** Reads on a few connections. Queries that arrive together share a pipeline: to wake a server costs more than to read a row. */
import { coalesce } from '../coalesce.ts'
import { type Row, StoreAway, type Value } from '../db.ts'
import type { Query } from './connection.ts'
import type { Slot } from './sessions.ts'

type Job = Query & {
  /** Whether nothing else shall wait for it. */
  isLong: boolean
  resolve: (rows: Row[]) => void
  reject: (error: Error) => void
  tries: number
}

/** Few, so that few queries wait behind a slow one. */
const QUERIES_IN_PIPELINE = 8
/** With more waiting reads than this, a read is refused: its caller would time out before its turn. */
const MAX_WAITING = 10_000
/** A read changes nothing, so it may run again when its connection was lost. */
const MAX_TRIES = 2

export function createReader(slots: Slot[]) {
  const idleSlots = [...slots]
  const waiting: Job[] = []
  const schedule = coalesce(dispatch)
  const wakeups: (() => void)[] = []

  function dispatch(): void {
    while (waiting.length > 0 && idleSlots.length > 0) {
      const pipeline = waiting.splice(0, pipelineLength(waiting))
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
    read: (text: string, values: Value[], { isLong = false } = {}): Promise<Row[]> =>
      new Promise((resolve, reject) => {
        if (waiting.length >= MAX_WAITING) {
          return reject(new StoreAway('too many reads are waiting'))
        }
        waiting.push({ text, values, isLong, resolve, reject, tries: 0 })
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

function pipelineLength(waiting: Job[]): number {
  const next = waiting.slice(0, QUERIES_IN_PIPELINE)
  const long = next.findIndex(({ isLong }) => isLong)
  return long === -1 ? next.length : Math.max(1, long)
}
