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
  const underWay = new Set<Promise<void>>()
  const schedule = coalesce(flush)

  function flush(): void {
    while (waiting.length > 0) {
      const work = settle(waiting.splice(0, IN_BATCH)).finally(() => underWay.delete(work))
      underWay.add(work)
    }
  }

  async function settle(jobs: Job<Input, Outcome>[]): Promise<void> {
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
  }

  return {
    add: (input: Input): Promise<Outcome> =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject })
        if (waiting.length === IN_BATCH) flush()
        else schedule()
      }),

    async idle(): Promise<void> {
      flush()
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
