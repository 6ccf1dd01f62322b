/** The catalogue: what is on sale, composed of each product's entry. */
import type { TSchema } from 'typebox'
import { closed, only, Type } from '../../lib/json-schema.ts'
import type { NodeHealth } from '../../payment/health.ts'
import type { App } from '../app.ts'
import { type ClientAddress, clientScope } from '../client-address.ts'
import { LIMITS, type Limits } from '../limits.ts'
import { errors } from '../schemas.ts'
import type { NewOrders } from './new-orders.ts'

export type CatalogEntry = {
  product: string
  /** The schema of `products.<product>`, and its value without the plans. */
  schema: TSchema
  entry: { description: string } & Record<string, string>
  plans: Readonly<Record<string, object>>
}

export function mountCatalog(
  app: App,
  deps: {
    health: NodeHealth
    entries: CatalogEntry[]
    limits: Limits
    clientAddress: ClientAddress
    newOrders: Pick<NewOrders, 'isSoldOut'>
  },
): void {
  const schema = only(
    Object.fromEntries(deps.entries.map(({ product, schema }) => [product, schema])),
  )
  /** Made at each request: a reload can change the plans, and a ceiling can be reached. */
  const products = (isSoldOut: boolean) =>
    Object.fromEntries(
      deps.entries.map(({ product, entry, plans }) => [
        product,
        {
          ...entry,
          plans: Object.values(plans).map((plan) =>
            isSoldOut ? { ...plan, available: false } : plan,
          ),
        },
      ]),
    )
  app.get(
    '/api/catalog',
    {
      schema: {
        tags: ['payments'],
        operationId: 'getCatalog',
        summary: 'Products, plans and prices',
        description: 'Read it before you buy: prices, limits, and whether the checkout is open.',
        response: {
          200: closed('Catalogue', 'What is on sale, and whether it can be bought now', {
            checkoutEnabled: Type.Boolean({
              description: 'Whether the node takes payments now',
            }),
            currency: Type.Literal('sat'),
            products: schema,
          }),
          ...errors('rate limited'),
        },
      },
    },
    async (request, reply) => {
      await deps.limits.take(LIMITS.catalog, clientScope(deps.clientAddress(request.raw)), reply)
      return {
        checkoutEnabled: deps.health.isHealthy(),
        currency: 'sat' as const,
        products: products(await deps.newOrders.isSoldOut(request.raw)),
      }
    },
  )
}
