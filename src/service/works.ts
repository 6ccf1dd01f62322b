/** The periodic work of the service: purges, and what products, alerts and the clock repeat. */
import type { Logger } from 'pino'
import type { InTurn } from '../db/leases.ts'
import type { Repeated } from '../http/product.ts'
import type { HeldClock } from '../lib/clock.ts'

/** Expired content is refused at once. Its bytes are deleted within this time plus the store's truncation. */
const PURGE_EVERY_MS = 30_000

/** Calls `turn` at this interval, until the returned function is called. */
export type Timer = (ms: number, turn: () => void) => () => void

export const machineTimer: Timer = (ms, turn) => {
  const timer = setInterval(turn, ms)
  return () => clearInterval(timer)
}

/**
 * Work that deletes what ended before a time: nothing while the clock is held. One instance does it at a time.
 * @param purge gets that time.
 */
export function purging(
  name: string,
  purge: (now: number) => Promise<unknown>,
  {
    inTurn,
    clock,
    event = `${name}.purge_failed`,
  }: { inTurn: InTurn; clock: HeldClock; event?: string },
): Repeated {
  const overBy = (): number => (clock.isHeld() ? 0 : clock.now())
  return {
    everyMs: PURGE_EVERY_MS,
    event,
    work: () => inTurn(`${name}.purge`, PURGE_EVERY_MS, () => purge(overBy())),
  }
}

/** Runs each work at its interval, never twice at once. The returned function waits for those under way. */
export function startWorks(
  works: readonly Repeated[],
  { log, timer }: { log: Logger; timer: Timer },
): () => Promise<void> {
  const stops = works.map(({ everyMs, event, work }) => {
    let running: Promise<void> | null = null
    const stop = timer(everyMs, () => {
      running ??= work()
        .catch((error) => log.error({ event, reason: String(error) }))
        .finally(() => {
          running = null
        })
    })
    return async () => {
      stop()
      await running
    }
  })
  return async () => void (await Promise.all(stops.map((stop) => stop())))
}
