/** The JSON body of a purchase: `{"planId": …}` and nothing else. */
import { Compile } from 'typebox/schema'
import { isObject, parseStrictJsonBytes } from '../lib/json.ts'
import type { PlanId } from '../lib/product-names.ts'
import { invalid } from './errors.ts'
import { createFaultFinder } from './fault.ts'
import { PlanSelection } from './schemas.ts'

/** The JSON needs much less, even with spaces. */
export const MAX_PLAN_SELECTION_BYTES = 4 * 1024

const selection = Compile(PlanSelection)
const faultIn = createFaultFinder(PlanSelection)

/** @throws Problem `invalid request body` for a body that says anything: the address has said it all. */
export function refuseAnyBody(body: Buffer): void {
  if (body.length === 0) return
  const value = parseStrictJsonBytes(body)
  if (isObject(value) && Object.keys(value).length === 0) return
  throw invalid('invalid request body', { expected: 'nothing, or {}' })
}

/** @throws Problem `invalid plan` for an unknown plan, `invalid request body` for anything else. */
export function parsePlanSelection(body: Buffer): PlanId {
  const value = parseStrictJsonBytes(body)
  if (selection.Check(value)) return value.planId
  const isOnlyThePlan =
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).join() === 'planId' &&
    'planId' in value &&
    typeof value.planId === 'string'
  throw invalid(isOnlyThePlan ? 'invalid plan' : 'invalid request body', faultIn(value))
}
