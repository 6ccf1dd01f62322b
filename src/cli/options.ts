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

/** Parses a receiver's address. @throws CliError for anything but http and https. */
export function receiverOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && /^https?:$/.test(url.protocol)) return url
  throw misuse('The receiver must be an http or https URL, such as http://localhost:3000/hook')
}
