/** The rate limits in force: the defaults, changed by the operator's file. */
import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { ConfigError } from './config.ts'
import { LIMITS, type Limit, OPEN_ORDERS, type Rate, type Rates } from './http/limits.ts'

/** Requests a minute, a burst, and open orders: beyond this a limit limits nothing. */
const MOST = 1_000_000_000

const RateSchema = Type.Union([
  Type.Null(),
  Type.Object(
    {
      perMinute: Type.Number({ exclusiveMinimum: 0, maximum: MOST }),
      burst: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST })),
    },
    { additionalProperties: false },
  ),
])
const OpenOrdersSchema = Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: MOST })])

/**
 * @param setting `on`, `off`, or the content of the file.
 * @param limits every limit that there is.
 * @throws ConfigError that names the member which is wrong.
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
  // Where invoices cost nobody anything, new orders are not limited by default.
  const isFree = (limit: Limit): boolean => isSimulator && limit.name === LIMITS.quote.name
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

/** What the file says: of each limit, and of open orders; null switches off. */
type Changes = {
  openOrders?: number | null
  changes: Record<string, { perMinute: number; burst?: number } | null>
}

const UNCHANGED: Changes = { changes: {} }

function readFile(setting: unknown, limits: readonly Limit[]): Changes {
  const names = limits.map(({ name }) => name)
  const file = Compile(
    Type.Partial(
      Type.Object({
        ...Object.fromEntries(names.map((name) => [name, RateSchema])),
        openOrders: OpenOrdersSchema,
      }),
      // Here, not inside: Partial makes a new object, and a mistyped name would limit nothing.
      { additionalProperties: false },
    ),
  )
  if (file.Check(setting)) {
    const { openOrders, ...changes } = setting as Changes['changes'] & Omit<Changes, 'changes'>
    return { changes, ...(openOrders === undefined ? {} : { openOrders }) }
  }
  const name = file.Errors(setting)[0]?.instancePath.split('/')[1]
  throw new ConfigError(`MAYFLY_RATE_LIMITS: ${fault(name, names)}.`)
}

/** What is wrong with the file, without what it says: which member, and what it must be. */
function fault(name: string | undefined, names: string[]): string {
  if (name === undefined) return 'the file must be an object'
  if (name === 'openOrders') return `openOrders must be an integer from 1 to ${MOST}, or null`
  if (!names.includes(name)) return `the file has no member ${name}`
  return `${name} must be {"perMinute": a number above 0, "burst": an integer from 1}, each at most ${MOST}, or null`
}
