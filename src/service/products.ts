/**
 * The products, one entry each. To remove a product, delete its folder, its entry here and its line in
 * `lib/product-names.ts`. AGENTS.md lists its other parts.
 */
import type { Alerts } from '../alerts/alerts.ts'
import type { Inboxes } from '../alerts/send.ts'
import { CATCH, openCatch } from '../catch/product.ts'
import { GATE } from '../gate/product.ts'
import { LIMITS, type Limit } from '../http/limits.ts'
import type {
  OpenProduct,
  ProductFacts,
  ProductParts,
  SoldPlan,
  SoldProductFacts,
} from '../http/product.ts'
import type { ApiSurface } from '../http/server/cors.ts'
import type { AnyProduct, PlanId, Product } from '../lib/product-names.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Provisioning } from '../payment/provisioning.ts'
import { openPulse, PULSE } from '../pulse/product.ts'
import { openWhisper, WHISPER } from '../whisper/product.ts'
import { readPlans, refuseUnknownProducts } from './catalog.ts'
import type { Config } from './config.ts'
import type { OnSale, Plans } from './on-sale.ts'

/** A product that is open. CATCH lends its inboxes to the alerts. */
type Opened = OpenProduct & { inboxes?: Inboxes }

/** A product of this service. `open` passes its own settings on. */
export type Entry<Facts extends ProductFacts = ProductFacts> = {
  facts: Facts
  open(
    parts: ProductParts,
    settings: { config: Config; onSale: OnSale; metrics: Metrics | null; alerts: Alerts },
  ): Opened | Promise<Opened>
  /** Whether it is switched on. Default: always. */
  isOn?(config: Config): boolean
}

const SOLD: Record<Product, Entry<SoldProductFacts>> = {
  catch: {
    facts: CATCH,
    open: (parts, { config, onSale, metrics }) =>
      openCatch({
        ...parts,
        plans: onSale.plansOf(CATCH),
        geoipDatabases: config.geoipDatabase,
        onIngested: metrics?.ingested ?? (() => undefined),
      }),
  },
  whisper: {
    facts: WHISPER,
    open: (parts, { config, onSale, alerts }) =>
      openWhisper({
        ...parts,
        alerts,
        plans: onSale.plansOf(WHISPER),
        unpaidBytes: config.unpaidBytes,
      }),
  },
  pulse: {
    facts: PULSE,
    open: (parts, { config, onSale, alerts }) =>
      openPulse({
        ...parts,
        alerts,
        plans: onSale.plansOf(PULSE),
        outsideUrl: config.outbound === 'on' ? config.baseUrl : null,
        switchWaitSeconds: config.switchWaitSeconds,
      }),
  },
}

const PRODUCTS: Record<AnyProduct, Entry> = {
  ...SOLD,
  gate: {
    facts: GATE,
    isOn: ({ gate }) => gate === 'on',
    open: async (parts, { config }) => {
      const { openGate } = await import('../gate/open.ts')
      const { outboundRules } = await import('./outbound-rules.ts')
      return openGate({ ...parts, outbound: outboundRules(config, parts.network) })
    },
  },
}

const ALL_FACTS: readonly ProductFacts[] = Object.values(PRODUCTS).map(({ facts }) => facts)

/** The products that are sold. */
export const SOLD_FACTS: readonly SoldProductFacts[] = Object.values(SOLD).map(({ facts }) => facts)

/** The paths and headers of every product, switched on or not. */
export const SURFACES: readonly ApiSurface[] = ALL_FACTS.map(({ surface }) => surface)

/** The limits of the service and of every product, switched on or not. */
export const ALL_LIMITS: readonly Limit[] = [
  ...Object.values(LIMITS),
  ...ALL_FACTS.flatMap(({ limits }) => limits),
]

/** How each product provisions, and releases what it reserved. */
export const PROVISIONINGS = byName(({ provisioning }): Provisioning => provisioning)

/** The products that are switched on. */
export const productsOn = (config: Config): Entry[] =>
  Object.values(PRODUCTS).filter(({ isOn }) => isOn?.(config) ?? true)

/**
 * The plans on sale, of every product.
 * @param file the operator's changes, or null.
 * @throws ConfigError for a plan that cannot be sold.
 */
export function readAllPlans(file: unknown): Plans {
  refuseUnknownProducts(file, Object.keys(SOLD))
  return byName((facts) => plansOf(facts, file))
}

const plansOf = <Plan extends SoldPlan>(
  { name, planSchema, plans }: SoldProductFacts<Plan>,
  file: unknown,
): Record<PlanId, Plan> => readPlans(file, { product: name, schema: planSchema, builtIn: plans })

function byName<T>(pick: (facts: SoldProductFacts) => T): Record<Product, T> {
  const picked = SOLD_FACTS.map((facts): [Product, T] => [facts.name, pick(facts)])
  return Object.fromEntries(picked) as Record<Product, T>
}
