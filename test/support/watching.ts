/** Runs the watcher of a shop's orders. */
import type { InTurn } from '../../src/db/leases.ts'
import { createWatcher } from '../../src/payment/watcher.ts'
import type { Shop } from './shop.ts'

/** The n-th key. */
export const key = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`

/** Watches like `watching`, at a node that does not report settlements. */
export function watchingSilence(shop: Shop): { stop(): Promise<void> } {
  shop.node.replaced.watch = (_onSettled, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  return watching(shop)
}

/** Watches until the test ends, or `stop` is called. */
export function watching(shop: Shop, inTurn?: InTurn): { stop(): Promise<void> } {
  const { db, node: lightning, orders, clock, log } = shop
  const turns = inTurn ? { inTurn } : {}
  const watcher = createWatcher({ db, lightning, orders, clock, log, ...turns })
  const ending = new AbortController()
  const stop = async (): Promise<void> => {
    ending.abort()
    await watcher.stopped()
  }
  watcher.start(ending.signal)
  shop.beforeClose(stop)
  return { stop }
}
