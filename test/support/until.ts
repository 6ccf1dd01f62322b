/** Waits in tests: for a condition, with a time limit, never for a length of time. The limit is for what hangs. */
import { setTimeout as wait } from 'node:timers/promises'

export type Patience = { withinMs?: number; everyMs?: number }

/**
 * For what happens in this process. On a busy machine these tries take longer, and so does what is waited for. Mutants
 * that hang are given up sooner.
 */
const IN_PROCESS_MS = Number(process.env.TEST_PATIENCE_MS ?? 10_000)
/** While a node, a browser or another program runs that this process has started, and the longest wait of all. */
const LONGEST_MS = 60_000

/** The first value of `ask` that is not null, undefined or false. While `ask` throws, it is called again. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  { withinMs, everyMs = 25 }: Patience = {},
): Promise<T> {
  const began = performance.now()
  for (let tries = 1; ; tries++) {
    const outcome = await attempt(ask)
    if (outcome.value !== undefined) return outcome.value
    const waited = performance.now() - began
    const isTried = tries * everyMs > IN_PROCESS_MS && !runsPrograms()
    if (waited > (withinMs ?? LONGEST_MS) || (withinMs === undefined && isTried)) {
      throw new Error(`waited ${Math.round(waited)} ms for ${what}`, { cause: outcome.error })
    }
    await wait(everyMs)
  }
}

const runsPrograms = (): boolean => process.getActiveResourcesInfo().includes('ProcessWrap')

async function attempt<T>(
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
): Promise<{ value?: T; error?: unknown }> {
  try {
    const value = await ask()
    return value === null || value === undefined || value === false ? {} : { value }
  } catch (error) {
    return { error }
  }
}
