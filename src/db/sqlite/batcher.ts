/** Collects what is asked of a thread, and asks it in batches: a message costs both threads more than its work. */
import { createAlone } from '../alone.ts'
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
  const alone = createAlone({ isBusy: () => underWay > 0, goOn: flush })
  const schedule = coalesce(flush)

  function flush(): void {
    while (!alone.isTaken() && waiting.length > 0) void settle(waiting.splice(0, IN_BATCH))
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
    alone.wake()
  }

  return {
    add: (input: Input): Promise<Outcome> =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject })
        if (waiting.length === IN_BATCH) flush()
        else schedule()
      }),

    /** Runs `work` while the thread has nothing else to do. Inputs added meanwhile wait. */
    alone: alone.run,

    idle(): Promise<void> {
      flush()
      return alone.idle(() => waiting.length === 0)
    },
  }
}
