/** Collects what is asked of a thread, and asks it in batches: a message costs both threads more than its work. */
import { coalesce } from '../coalesce.ts'

type Job<Input, Outcome> = {
  input: Input
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

/**
 * What arrives in one turn of the event loop is asked together. With this limit, the thread begins with the first
 * ones while the last requests of the turn are still being read.
 */
const IN_BATCH = 32

export type Batcher<Input, Outcome> = ReturnType<typeof createBatcher<Input, Outcome>>

/** @param ask has an outcome for each input, or rejects if the thread has ended. */
export function createBatcher<Input, Outcome>(
  ask: (inputs: Input[]) => Promise<(Outcome | Error)[]>,
) {
  const waiting: Job<Input, Outcome>[] = []
  let underWay = 0
  let isExclusive = false
  const wakeups: (() => void)[] = []
  const schedule = coalesce(flush)

  function flush(): void {
    while (!isExclusive && waiting.length > 0) void settle(waiting.splice(0, IN_BATCH))
  }

  async function settle(jobs: Job<Input, Outcome>[]): Promise<void> {
    underWay++
    try {
      const outcomes = await ask(jobs.map(({ input }) => input))
      for (const [i, job] of jobs.entries()) {
        const outcome = outcomes[i] as Outcome | Error
        if (outcome instanceof Error) job.reject(outcome)
        else job.resolve(outcome)
      }
    } catch (error) {
      for (const { reject } of jobs) reject(error)
    }
    underWay--
    if (underWay === 0) wake()
  }

  function wake(): void {
    for (const resume of wakeups.splice(0)) resume()
  }

  const freed = (): Promise<void> => new Promise((resume) => wakeups.push(resume))

  return {
    add: (input: Input): Promise<Outcome> =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject })
        if (waiting.length === IN_BATCH) flush()
        else schedule()
      }),

    /** Runs `work` while the thread has nothing else to do. Inputs added meanwhile wait. */
    async alone<T>(work: () => Promise<T>): Promise<T> {
      // Checked and set without an await between: of two that wake together, one continues.
      while (isExclusive || underWay > 0) await freed()
      isExclusive = true
      try {
        return await work()
      } finally {
        isExclusive = false
        wake()
        flush()
      }
    },

    async idle(): Promise<void> {
      for (;;) {
        flush()
        if (!isExclusive && underWay === 0 && waiting.length === 0) return
        await freed()
      }
    },
  }
}
