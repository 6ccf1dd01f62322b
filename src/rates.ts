/** The rate limits in force: the defaults, changed by the operator's file. */
import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { ConfigError } from './config.ts'
import { DEFAULT_RATES, type LimitName, RATES, type Rates } from './http/limits.ts'

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
const file = Compile(
  Type.Partial(
    Type.Object({
      ...Object.fromEntries(Object.keys(RATES).map((name) => [name, RateSchema])),
      openOrders: Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: MOST })]),
    }),
    // Here, not inside: Partial makes a new object, and a mistyped name would limit nothing.
    { additionalProperties: false },
  ),
)

/**
 * @param setting `on`, `off`, or the content of the file.
 * @param isSimulator where invoices cost nobody anything, new orders are not limited by default.
 * @throws ConfigError that names the member which is wrong.
 */
export function readRates(setting: unknown, isSimulator: boolean): Rates {
  if (setting === 'off') return {}
  const rates: Rates = { ...DEFAULT_RATES }
  if (isSimulator) {
    delete rates.quote
    delete rates.openOrders
  }
  if (setting === 'on') return rates
  if (!file.Check(setting)) throw new ConfigError(`MAYFLY_RATE_LIMITS: ${fault(setting)}.`)
  const { openOrders, ...changes } = setting as Record<string, unknown> & { openOrders?: unknown }
  if (openOrders !== undefined) {
    delete rates.openOrders
    if (typeof openOrders === 'number') rates.openOrders = openOrders
  }
  for (const [name, change] of Object.entries(changes) as [LimitName, Change | null][]) {
    delete rates[name]
    if (change) rates[name] = { ...change, burst: change.burst ?? Math.ceil(change.perMinute) }
  }
  return rates
}

type Change = { perMinute: number; burst?: number }

/** What is wrong with the file, without what it says: which member, and what it must be. */
function fault(setting: unknown): string {
  const name = file.Errors(setting)[0]?.instancePath.split('/')[1]
  if (name === undefined) return 'the file must be an object'
  if (name === 'openOrders') return `openOrders must be an integer from 1 to ${MOST}, or null`
  if (!Object.hasOwn(RATES, name)) return `the file has no member ${name}`
  return `${name} must be {"perMinute": a number above 0, "burst": an integer from 1}, each at most ${MOST}, or null`
}
