/** Resealing: encrypts seeds under the current secret again, so that an older one can be retired. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { fingerprints, openSeed, type Secrets, seal } from '../secrets/secrets.ts'
import { type OrderStore, resealOrder } from './store.ts'

/**
 * Encrypts the seeds under an older secret again, under the current one.
 * @returns how many live orders were made under a secret that is not configured.
 */
export async function reseal(deps: {
  db: Db
  store: OrderStore
  secrets: Secrets
  clock: Clock
}): Promise<number> {
  const { db, store, secrets, clock } = deps
  let after = ''
  for (;;) {
    const orders = await store.withSeed(after, 500)
    for (const order of orders) {
      after = order.order_id
      const opened = order.seed && openSeed(secrets, order.seed, order.order_id)
      if (!order.seed || !opened || opened.isCurrent) continue
      const key = secrets.seedKeys[0]
      const sealed = seal(key, opened.plain, order.order_id)
      await db.write({
        lockKey: order.order_id,
        statements: { order: resealOrder(order.order_id, order.seed, sealed) },
      })
    }
    if (orders.length < 500) return store.foreign(fingerprints(secrets), clock.now())
  }
}
