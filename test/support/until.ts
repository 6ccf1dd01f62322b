/**
 * Waiting in tests: for a condition, with a bound, never for a length of time. The bound is for what
 * hangs, not for what is slow: a machine that starts nodes and browsers side by side is.
 */
import { setTimeout as wait } from 'node:timers/promises'

export type Patience = { withinMs?: number; everyMs?: number }

/** The first value of `ask` that is neither null, undefined nor false; a throw counts as not yet. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  { withinMs = 120_000, everyMs = 25 }: Patience = {},
): Promise<T> {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const outcome = await attempt(ask)
    if (outcome.value !== undefined) return outcome.value
    if (performance.now() > giveUpAt) {
      throw new Error(`waited ${withinMs} ms for ${what}`, { cause: outcome.error })
    }
    await wait(everyMs)
  }
}

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
