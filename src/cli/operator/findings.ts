/** What `mayfly doctor` finds: one line for each check. */
import { messageOf } from '../../lib/errors.ts'

export type Finding = { check: string; state: 'ok' | 'note' | 'bad'; says: string }

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says })
/** Nothing is broken, and the operator may want to know. */
export const note = (check: string, says: string): Finding => ({ check, state: 'note', says })
/** It keeps the service from starting or selling, or somebody from what is owed. */
export const bad = (check: string, says: string): Finding => ({ check, state: 'bad', says })

/** What the work finds, or what it throws as a bad finding. */
export async function tried(
  check: string,
  work: () => Promise<Finding | string>,
  fault: typeof bad = bad,
): Promise<Finding> {
  try {
    const found = await work()
    return typeof found === 'string' ? ok(check, found) : found
  } catch (error) {
    return fault(check, messageOf(error))
  }
}
