/** What is wrong with the arguments of a caller. */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { createFaultFinder } from '../http/validation.ts'

/** Says what a value must be instead, or null if it fits. Compiled by its first use. */
export function checkOf(schema: TSchema): (given: unknown) => string | null {
  let validator: { Check(value: unknown): boolean } | null = null
  const faultIn = createFaultFinder(schema)
  return (given) => {
    validator ??= Compile(schema)
    if (validator.Check(given)) return null
    const { field, expected } = faultIn(given)
    return field === undefined ? `Expected: ${expected}` : `${field} must be ${expected}`
  }
}
