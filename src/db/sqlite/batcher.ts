/** Collects what is asked of a thread, hands it over in batches, and settles it in the same order. */
import { coalesce } from '../coalesce.ts'

/** What was asked, and the promise of its outcome. */
type Job<Input, Outcome> = {
  input: Input
  resolve: (outcome: Outcome) => void
  reject: (error: Error) => void
}

export type Batcher<Input, Outcome> = {
  add(input: Input): Promise<Outcome>
  /** The oldest inputs that were handed over have these outcomes. */
  settle(count: number, outcome: (index: number, input: Input) => Outcome | Error): void
  /** Nothing that was added has an outcome: the thread has ended. */
  fail(reason: Error): void
  /** Runs `work` while the thread has nothing else to do. Inputs added meanwhile wait. */
  alone<T>(work: () => Promise<T>): Promise<T>
  idle(): Promise<void>
}

/** The inputs that wait are handed over in parts: the thread takes only so many at a time. */
const MAX_HANDED_OVER = 64

/**
 * @param handOver hands the first of these inputs to the thread, and returns how many. 0: the thread can take
 * none until others are settled. An Error: it takes no more. What it took before is settled, or fails.
 * @param inBatch so many inputs are handed over at once. The last ones of a turn of the event loop may be fewer.
 */
export function createBatcher<Input, Outcome>(
  inBatch: number,
  handOver: (inputs: Input[]) => number | Error,
): Batcher<Input, Outcome> {
  let waiting: Job<Input, Outcome>[] = []
  let underWay: Job<Input, Outcome>[] = []
  let isExclusive = false
  const schedule = coalesce(flush)
  let wakeups: (() => void)[] = []

  function flush(): void {
    while (!isExclusive && waiting.length > 0) {
      const count = handOver(waiting.slice(0, MAX_HANDED_OVER).map(({ input }) => input))
      if (count instanceof Error) {
        for (const { reject } of waiting.splice(0)) reject(count)
        return
      }
      if (count === 0) return
      for (let i = 0; i < count; i++) underWay.push(waiting[i] as Job<Input, Outcome>)
      waiting = count === waiting.length ? [] : waiting.slice(count)
    }
  }

  function fail(reason: Error): void {
    const failed = [...underWay, ...waiting]
    underWay = []
    waiting = []
    for (const { reject } of failed) reject(reason)
    wake()
  }

  function wake(): void {
    const woken = wakeups
    wakeups = []
    for (const resume of woken) resume()
  }

  const freed = (): Promise<void> => new Promise((resume) => wakeups.push(resume))

  return {
    fail,
    add: (input) =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject })
        if (waiting.length === inBatch) flush()
        else schedule()
      }),
    settle(count, outcome) {
      const settled = underWay
      underWay = count === settled.length ? [] : settled.slice(count)
      for (let index = 0; index < count; index++) {
        const job = settled[index] as Job<Input, Outcome>
        const done = outcome(index, job.input)
        if (done instanceof Error) job.reject(done)
        else job.resolve(done)
      }
      // The thread may have had no room for them.
      if (waiting.length > 0) schedule()
      if (underWay.length === 0) wake()
    },
    async alone(work) {
      // Checked and set without an await between: of two that wake together, one continues.
      while (isExclusive || underWay.length > 0) await freed()
      isExclusive = true
      try {
        return await work()
      } finally {
        isExclusive = false
        wake()
        flush()
      }
    },
    async idle() {
      for (;;) {
        // A thread that has ended answers at once, so there may be nothing left to wait for.
        flush()
        if (!isExclusive && underWay.length === 0 && waiting.length === 0) return
        await freed()
      }
    },
  }
}
