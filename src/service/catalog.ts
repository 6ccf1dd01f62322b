/** The plans on sale: the built-in plans, in which the operator's file can change each field. */
import type { TSchema } from 'typebox'
import { validatorOf } from '../http/validation.ts'
import { PLAN_IDS, type PlanId } from '../lib/product-names.ts'
import { ConfigError } from './config.ts'

/**
 * The plans of one product.
 * @throws ConfigError that names the plan and field that the product cannot sell.
 */
export function readPlans<Plan extends { planId: string }>(
  file: unknown,
  { product, schema, builtIn }: { product: string; schema: TSchema; builtIn: Record<PlanId, Plan> },
): Record<PlanId, Plan> {
  const changes = section(section(file ?? {}, null, 'the file')[product], PLAN_IDS, product)
  const plans = { ...builtIn }
  for (const planId of PLAN_IDS) {
    const fields = Object.keys(builtIn[planId])
    const change = section(changes[planId], fields, `${product}.${planId}`)
    if (Object.keys(change).length === 0) continue
    const plan: unknown = { ...builtIn[planId], ...change, planId }
    const validator = validatorOf(schema)
    if (!validator.Check(plan)) {
      const [field] = validator.Errors(plan)[1]
      const where = `${product}.${planId}${field ? field.instancePath.replaceAll('/', '.') : ''}`
      throw new ConfigError(`MAYFLY_CATALOG: ${where} ${field?.message ?? 'is not valid'}.`)
    }
    plans[planId] = plan as Plan
  }
  return plans
}

/** Refuses a file that names a product which is not sold. */
export function refuseUnknownProducts(file: unknown, products: readonly string[]): void {
  section(file ?? {}, products, 'the file')
}

/** An object of the file, empty if it is missing. With `names`, it may have only these members. */
function section(
  value: unknown,
  names: readonly string[] | null,
  where: string,
): Record<string, unknown> {
  if (value === undefined) return {}
  // Null would look as if it switched a plan off.
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new ConfigError(`MAYFLY_CATALOG: ${where} must be an object.`)
  }
  const unknown = names && Object.keys(value).find((name) => !names.includes(name))
  if (unknown) {
    throw new ConfigError(`MAYFLY_CATALOG: ${where} has no member ${unknown}.`)
  }
  return value as Record<string, unknown>
}
