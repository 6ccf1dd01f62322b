/** The plans on sale, which a reload changes while the service runs. */
import type { SoldPlan, SoldProductFacts } from '../http/product.ts'
import type { PlanId, Product } from '../lib/product-names.ts'

/** The plans of every product. */
export type Plans = Record<Product, Record<PlanId, SoldPlan>>

export type OnSale = ReturnType<typeof createOnSale>

export function createOnSale(plans: Plans) {
  let edition = 0
  return {
    /**
     * The plans of a product. A reload changes this record in place and at once for all products: read it at each
     * request, and keep no plan of it. They were checked against the schema of their product.
     */
    plansOf: <Plan extends SoldPlan>({ name }: SoldProductFacts<Plan>) =>
      plans[name] as Readonly<Record<PlanId, Plan>>,
    /** The plans of a product by its name, or none. */
    plansNamed: (product: string): readonly SoldPlan[] =>
      Object.values(plans[product as Product] ?? {}),
    /** Another number after each reload: what was made of the plans before is out of date. */
    edition: (): number => edition,
    /** @param next plans that were checked. @returns the names of those that differ, such as `catch.spark`. */
    replace(next: Plans): string[] {
      const changed: string[] = []
      for (const [product, record] of Object.entries(plans)) {
        const theirs = next[product as Product]
        for (const [planId, plan] of Object.entries(record)) {
          const now = theirs[planId as PlanId]
          if (JSON.stringify(plan) !== JSON.stringify(now)) changed.push(`${product}.${planId}`)
        }
        Object.assign(record, theirs)
      }
      edition++
      return changed
    },
  }
}
