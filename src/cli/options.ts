/** Options of several commands. Commander refuses any other value, and completion offers the choices. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { PLAN_IDS, type PlanId, PRODUCT_NAMES } from '../lib/product-names.ts'
import { firstLine, readSecret } from './ask.ts'
import { CliError, EXIT } from './exit.ts'

export const planOption = (description = 'the plan'): Option =>
  new Option('--plan <plan>', description).choices(PLAN_IDS)

export type PurchaseOptions = { plan: PlanId; name?: string; resume?: string; beside?: string }

/** Adds the options of every purchase. */
export const forPurchase = (command: Command): Command =>
  command
    .addOption(planOption().default('spark'))
    .option('--name <name>', 'the name to save it under')
    .option('--resume <name>', 'continue this interrupted purchase')
    .option('--beside <name>', 'buy another one, though it is unknown whether this one was paid')

export const productOption = (description = 'the product'): Option =>
  new Option('--product <product>', description).choices(PRODUCT_NAMES)

/** Reads a whole number of this range. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }

/** @throws CliError if one of these options is given without the one that gives it a meaning. */
export function goesWith(other: string, isGiven: boolean, options: Record<string, unknown>): void {
  const lone = Object.keys(options).find((name) => options[name] !== undefined)
  if (isGiven || lone === undefined) return
  throw new CliError(`${lone} goes with ${other}, which is missing.`, EXIT.usage)
}

/** The secret in an option that names a file, or - to ask for it or take it from stdin. */
export const secretFrom = async (
  cli: { signal: AbortSignal },
  file: string,
  question: string,
): Promise<string> => (file === '-' ? await readSecret(cli, question) : firstLine(file)).trim()
