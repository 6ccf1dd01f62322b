/**
 * The handler runs of this process: whether one is still running, and whether its receipt must be
 * given back.
 */
import type { GivenBack } from './service.ts'

/** The maximum of remembered runs. A forgotten one does not run again: the store has its key. */
const MAX_RUNS = 10_000
/** The maximum of visitors that wait for one run, and for all. Each holds a connection and a body. */
const MAX_WAITING = 8
const MAX_WAITING_IN_ALL = 256

export type Run = {
  state(): 'running' | 'spent' | 'give-back pending' | 'given back'
  /** The handler has finished, or its client left. The receipt is not given back. */
  spent(): void
  /** The server failed while its client was connected. Resolves after one attempt to record that. */
  failed(): Promise<void>
  /** Retries to record a pending give-back. */
  giveBack(): Promise<void>
  /** Waits for the end of the run. False after this time, or if too many visitors wait. */
  ended(withinMs: number): Promise<boolean>
}

export type Runs = {
  begin(key: string, giveBack: () => Promise<GivenBack>): Run
  get(key: string): Run | null
}

export function createRuns(): Runs {
  const runs = new Map<string, Run>()
  let waitingInAll = 0

  function createRun(recordGiveBack: () => Promise<GivenBack>): Run {
    const end = Promise.withResolvers<void>()
    let state: ReturnType<Run['state']> = 'running'
    let recording: Promise<void> | null = null
    let waiting = 0

    async function giveBackOnce(): Promise<void> {
      const given = await recordGiveBack().catch((): GivenBack => 'unknown')
      if (given === 'recorded') state = 'given back'
      if (given === 'refused') state = 'spent'
    }

    const run: Run = {
      state: () => state,
      spent() {
        if (state === 'running') state = 'spent'
        end.resolve()
      },
      async failed() {
        if (state !== 'running') return
        state = 'give-back pending'
        await run.giveBack()
        end.resolve()
      },
      async giveBack() {
        if (state !== 'give-back pending') return
        recording ??= giveBackOnce().finally(() => {
          recording = null
        })
        await recording
      },
      async ended(withinMs) {
        // A run whose failure is being recorded has not ended yet.
        const isOver = state !== 'running' && recording === null
        if (isOver) return true
        if (waiting >= MAX_WAITING || waitingInAll >= MAX_WAITING_IN_ALL) return false
        waiting++
        waitingInAll++
        try {
          return await within(withinMs, end.promise)
        } finally {
          waiting--
          waitingInAll--
        }
      },
    }
    return run
  }

  return {
    begin(key, giveBack) {
      const run = createRun(giveBack)
      runs.set(key, run)
      for (const old of runs.keys()) {
        if (runs.size <= MAX_RUNS) break
        runs.delete(old)
      }
      return run
    },
    get: (key) => runs.get(key) ?? null,
  }
}

async function within(ms: number, ending: Promise<void>): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => timeout.resolve(false), ms)
  try {
    return await Promise.race([ending.then(() => true), timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}
