/** Options of several commands. */
import { PLAN_IDS } from '../lib/product-names.ts'
import { firstLine, readSecret } from './ask.ts'
import { misuse } from './exit.ts'

/** The options of every purchase. */
export const FOR_PURCHASE = {
  '--plan <plan>': ['the plan', PLAN_IDS, 'spark'],
  '--name <name>': 'the name to save it under',
  '--resume <name>': 'continue this interrupted purchase',
  '--beside <name>': 'buy another one, though it is unknown whether this one was paid',
} as const

/** @throws CliError if one of these options is given without the one that gives it a meaning. */
export function goesWith(other: string, isGiven: boolean, options: Record<string, unknown>): void {
  const lone = Object.keys(options).find((name) => options[name] !== undefined)
  if (isGiven || lone === undefined) return
  throw misuse(`${lone} goes with ${other}, which is missing.`)
}

/** The secret in an option that names a file, or - to ask for it or take it from stdin. */
export const secretFrom = async (
  cli: { signal: AbortSignal },
  file: string,
  question: string,
): Promise<string> => (file === '-' ? await readSecret(cli, question) : firstLine(file)).trim()
