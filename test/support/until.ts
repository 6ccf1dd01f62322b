/**
 * Waits in tests: for a condition, with a time limit, never for a length of time. The limit is for what
 * hangs. It is long, because a machine that starts nodes and browsers in parallel is slow.
 */
import { setTimeout as wait } from 'node:timers/promises'

export type Patience = { withinMs?: number; everyMs?: number }

/** The first value of `ask` that is not null, undefined or false. While `ask` throws, it is called again. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  { withinMs = 60_000, everyMs = 25 }: Patience = {},
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
