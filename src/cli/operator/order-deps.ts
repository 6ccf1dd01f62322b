/** What the operator's commands on orders work with: the products, and the node of the service. */
import { type Config, ConfigError } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { createHints } from '../../db/hints.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Product } from '../../lib/product-names.ts'
import type { Lightning } from '../../lightning/lightning.ts'
import { openLightning } from '../../lightning/open.ts'
import type { Provisioning } from '../../payment/provisioning.ts'
import { openProducts, readAllPlans } from '../../products.ts'
import { bindStore } from '../../store-identity.ts'

/** What each product does to provision, and to let go of what it reserved. */
export function provisionings(config: Config, db: Db): Partial<Record<Product, Provisioning>> {
  const products = openProducts({
    plans: readAllPlans(config.catalog),
    unpaidBytes: config.unpaidBytes,
    db,
    // Who looks at what is provisioned here learns of it by looking again.
    hints: createHints(),
    clock: systemClock,
    isProxied: () => false,
    locate: () => null,
  })
  return Object.fromEntries(products.map(({ product, provisioning }) => [product, provisioning]))
}

/**
 * Works with the node of the settings, if the store belongs to it.
 * @throws ConfigError for a node that is another one's, or cannot be reached by these settings.
 */
export async function withNode<T>(
  config: Config,
  db: Db,
  work: (lightning: Lightning) => Promise<T>,
): Promise<T> {
  const warn = (reason: string): void => void process.stderr.write(`${reason}\n`)
  const node = await openLightning(config.lightningUrl.url, { db, clock: systemClock, warn })
  try {
    if (node.problem) throw new ConfigError(node.problem.sentence)
    const { network } = await node.lightning.info()
    await bindStore(db, { backend: config.lightningUrl.kind, network })
    return await work(node.lightning)
  } finally {
    await node.close()
  }
}
