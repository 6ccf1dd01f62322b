/** The plan that an option names. */
import { isPlanId, type PlanId } from '../lib/product-names.ts'
import { CliError, EXIT } from './exit.ts'

/** @throws CliError for an unknown plan. */
export function planOf(text: string): PlanId {
  if (isPlanId(text)) return text
  throw new CliError(
    '--plan must be spark, standard or long. `mayfly catalog` shows them.',
    EXIT.usage,
  )
}
