/** What is on sale, composed of what each product says of itself. */
import { type TSchema, Type } from 'typebox'
import type { NodeHealth } from '../payment/health.ts'
import type { App } from './app.ts'

export type CatalogEntry = {
  product: string
  /** The schema and the value of `products.<product>`. */
  schema: TSchema
  describe(): unknown
}

export function mountCatalog(
  app: App,
  deps: { health: NodeHealth; entries: CatalogEntry[] },
): void {
  const products = Type.Object(
    Object.fromEntries(deps.entries.map(({ product, schema }) => [product, schema])),
    { additionalProperties: false },
  )
  app.get(
    '/api/catalog',
    {
      schema: {
        tags: ['payments'],
        summary: 'Products, plans and prices',
        response: {
          200: Type.Object(
            { checkoutEnabled: Type.Boolean(), currency: Type.Literal('sat'), products },
            { additionalProperties: false },
          ),
        },
      },
    },
    async () => ({
      checkoutEnabled: deps.health.isHealthy(),
      currency: 'sat',
      products: Object.fromEntries(
        deps.entries.map(({ product, describe }) => [product, describe()]),
      ),
    }),
  )
}
