/** The rate limits in force: the defaults, with the changes of the operator's file. */

import { LIMITS, type Limit, OPEN_ORDERS, type Rate, type Rates } from '../http/limits.ts'
import { validatorOf } from '../http/validation.ts'
import { only, Type } from '../lib/json-schema.ts'
import { ConfigError } from './config.ts'

/** The largest rate, burst and number of open orders. A larger number would limit nothing. */
const MAX_SETTING = 1_000_000_000

const RateSchema = Type.Union([
  Type.Null(),
  only({
    perMinute: Type.Number({ exclusiveMinimum: 0, maximum: MAX_SETTING }),
    burst: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_SETTING })),
  }),
])
const OpenOrdersSchema = Type.Union([
  Type.Null(),
  Type.Integer({ minimum: 1, maximum: MAX_SETTING }),
])

/** What opens orders. */
const FREE: ReadonlySet<string> = new Set([LIMITS.quote.name, LIMITS.quoteEgress.name])

/**
 * @param setting `on`, `off`, or the content of the file.
 * @param limits every limit of the service.
 * @throws ConfigError that names the wrong member.
 */
export function readRates(
  setting: unknown,
  limits: readonly Limit[],
  { isSimulator }: { isSimulator: boolean },
): Rates {
  if (setting === 'off') {
    return { limits: limits.map((limit) => ({ limit, rate: null })), openOrders: null }
  }
  const { openOrders, changes } = setting === 'on' ? UNCHANGED : readFile(setting, limits)
  // On the simulator invoices cost nothing, so new orders are not limited by default.
  const isFree = (limit: Limit): boolean => isSimulator && FREE.has(limit.name)
  const rateOf = (limit: Limit): Rate | null => {
    const change = changes[limit.name]
    if (change === undefined) return isFree(limit) ? null : limit
    return change && { ...change, burst: change.burst ?? Math.ceil(change.perMinute) }
  }
  return {
    limits: limits.map((limit) => ({ limit, rate: rateOf(limit) })),
    openOrders: openOrders === undefined ? (isSimulator ? null : OPEN_ORDERS) : openOrders,
  }
}

/** The changes of the file, by limit, and to the open orders. Null switches a limit off. */
type Changes = {
  openOrders?: number | null
  changes: Record<string, { perMinute: number; burst?: number } | null>
}

const UNCHANGED: Changes = { changes: {} }

function readFile(setting: unknown, limits: readonly Limit[]): Changes {
  const names = limits.map(({ name }) => name)
  const file = validatorOf(
    Type.Object(
      {
        ...Object.fromEntries(names.map((name) => [name, Type.Optional(RateSchema)])),
        openOrders: Type.Optional(OpenOrdersSchema),
      },
      // Without it, a mistyped name would be ignored.
      { additionalProperties: false },
    ),
  )
  if (file.Check(setting)) {
    const { openOrders, ...changes } = setting as Changes['changes'] & Omit<Changes, 'changes'>
    return { changes, ...(openOrders === undefined ? {} : { openOrders }) }
  }
  const name = file.Errors(setting)[1][0]?.instancePath.split('/')[1]
  throw new ConfigError(`MAYFLY_RATE_LIMITS: ${fault(name, names)}.`)
}

/** What is wrong with the file: the member and what it must be, but not its value. */
function fault(name: string | undefined, names: string[]): string {
  if (name === undefined) return 'the file must be an object'
  if (name === 'openOrders')
    return `openOrders must be an integer from 1 to ${MAX_SETTING}, or null`
  if (!names.includes(name)) return `the file has no member ${name}`
  return `${name} must be {"perMinute": a number above 0, "burst": an integer from 1}, each at most ${MAX_SETTING}, or null`
}
