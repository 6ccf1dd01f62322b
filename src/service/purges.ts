/** The periodic work of the service: the purges of the products, of the sales and of the limits. */
import type { Logger } from 'pino'
import type { InTurn } from '../db/leases.ts'
import type { HeldClock } from '../lib/clock.ts'
import type { AnyProduct } from '../lib/product-names.ts'

/** Expired content is refused at once. Its bytes are deleted within this time plus the store's truncation. */
const PURGE_EVERY_MS = 30_000

/** `purge` deletes what expired before a time. @returns how many rows it deleted. */
export type Purge = { product: AnyProduct; purge(now: number): Promise<number> }

export type Repeating = { stop(): Promise<void> }

type PurgeDeps = { inTurn: InTurn; clock: HeldClock }

/** Purges each product, and logs and counts the deleted rows. */
export function startPurges(
  purges: readonly Purge[],
  {
    log,
    onPurged,
    ...deps
  }: PurgeDeps & {
    log: Logger
    onPurged: ((product: string, gone: number) => void) | undefined
  },
): Repeating[] {
  return purges.map(({ product, purge }) =>
    startPurge(product, {
      ...deps,
      async purge(now) {
        const gone = await purge(now)
        if (gone > 0) log.info({ event: 'product.purged', product, gone })
        onPurged?.(product, gone)
      },
      onError: (err) => log.error({ event: 'product.purge_failed', product, err }),
    }),
  )
}

/** Runs one purge periodically: never twice at once, and on one instance at a time. */
export function startPurge(
  name: string,
  {
    inTurn,
    clock,
    purge,
    onError,
  }: PurgeDeps & {
    purge(now: number): Promise<void>
    onError: (error: unknown) => void
  },
): Repeating {
  const turn = (): Promise<void> =>
    inTurn(`${name}.purge`, PURGE_EVERY_MS, () => purge(overBy(clock)))
  return every(PURGE_EVERY_MS, turn, onError)
}

/** What ended before this time may be deleted: nothing while the clock is held. */
const overBy = (clock: HeldClock): number => (clock.isHeld() ? 0 : clock.now())

/** Runs `work` at this interval, never twice at once. `stop` waits for the run under way. */
export function every(
  ms: number,
  work: () => Promise<void>,
  onError: (error: unknown) => void,
): Repeating {
  let running: Promise<void> | null = null
  const timer = setInterval(() => {
    running ??= work()
      .catch(onError)
      .finally(() => {
        running = null
      })
  }, ms)
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
