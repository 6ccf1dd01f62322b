/**
 * What this process knows of handlers that were let run: whether one is still at it, and whether
 * its receipt is to be given back.
 */

/** Runs remembered. A forgotten one is not run again: the store has its key. */
const MAX_RUNS = 10_000
/** Visitors who wait for one run, and for all: each holds a connection and its body. */
const MAX_WAITING = 8
const MAX_WAITING_IN_ALL = 256

/** The service's answer to a give-back: `unknown` where it could not be reached. */
export type GivenBack = 'recorded' | 'refused' | 'unknown'

export type Run = {
  state(): 'running' | 'spent' | 'give-back pending' | 'given back'
  /** The handler is done, or its client is gone: nothing is given back. */
  spent(): void
  /** The server failed while its client was connected. Resolves once recording that was tried. */
  failed(): Promise<void>
  /** Tries once more to record a pending give-back. */
  giveBack(): Promise<void>
  /** Whether it ended within this time; false too where too many wait. */
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
        // While its failure is being recorded, the run is not over for those who wait.
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
