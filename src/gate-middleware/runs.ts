/**
 * What this process knows of handlers that were let run: whether one is still at it, and whether
 * its receipt is to be given back.
 */

/** Runs remembered. One that is forgotten is not run again: the store has its key. */
const RUNS_MOST = 10_000
/** Visitors who wait for one run, and for all: each holds a connection and its body. */
const WAITING_MOST = 8
const WAITING_MOST_IN_ALL = 256

/** What became of telling the service: `unknown` where it could not be told. */
export type GivenBack = 'recorded' | 'refused' | 'unknown'

export type Run = {
  state(): 'running' | 'spent' | 'owed' | 'given back'
  /** The handler is done, or its client is gone: nothing is given back. */
  spent(): void
  /** The server failed, and its client was there to see it. Resolves when that was tried to record. */
  failed(): Promise<void>
  /** Tries once more to record what is owed. */
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

  function createRun(tell: () => Promise<GivenBack>): Run {
    const end = Promise.withResolvers<void>()
    let state: ReturnType<Run['state']> = 'running'
    let telling: Promise<void> | null = null
    let waiting = 0

    async function giveBackOnce(): Promise<void> {
      const given = await tell().catch((): GivenBack => 'unknown')
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
        state = 'owed'
        await run.giveBack()
        end.resolve()
      },
      async giveBack() {
        if (state !== 'owed') return
        telling ??= giveBackOnce().finally(() => {
          telling = null
        })
        await telling
      },
      async ended(withinMs) {
        // While it is being told that it failed, the run is not over for those who wait.
        const isOver = state !== 'running' && telling === null
        if (isOver) return true
        if (waiting >= WAITING_MOST || waitingInAll >= WAITING_MOST_IN_ALL) return false
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
        if (runs.size <= RUNS_MOST) break
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
