/** `mayfly catalog`: what is on sale. */
import { client } from './cli.ts'
import { columns, size } from './text.ts'

export const addCatalog = client({
  command: 'catalog',
  says: 'show what is on sale',
  examples: ['mayfly catalog', 'mayfly catalog --json | jq .products.catch'],
  async run(cli) {
    const catalog = await cli.mayfly().catalog()
    const { products } = catalog
    const rows = [
      ['PRODUCT', 'PLAN', 'SATS', 'LASTS', 'LIMITS'],
      ...products.catch.plans.map((plan) => [
        ...start('catch', plan),
        `${plan.requestLimit} requests of ${size(plan.maxBytesPerRequest)}, ${size(plan.storageLimitBytes)} in total`,
      ]),
      ...products.whisper.plans.map((plan) => [
        ...start('whisper', plan),
        `${plan.readLimit} reads of up to ${size(plan.maxCiphertextBytes)}`,
      ]),
      ...products.pulse.plans.map((plan) => [
        ...start('pulse', plan),
        `${plan.heartbeatLimit} pings, about one every ${plan.suggestedCadenceSeconds} s`,
      ]),
    ]
    cli.answer(catalog, columns(rows))
    if (!catalog.checkoutEnabled && !cli.isJson) {
      cli.warn('The service cannot sell at the moment, because its Lightning node does not answer.')
    }
  },
})

type Plan = { planId: string; priceSats: number; durationLabel: string; available: boolean }

const start = (product: string, plan: Plan): string[] => [
  product,
  plan.available ? plan.planId : `${plan.planId} (not on sale)`,
  String(plan.priceSats),
  plan.durationLabel,
]
