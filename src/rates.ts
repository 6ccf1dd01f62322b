/** The rate limits in force: the defaults, changed by the operator's file. */
import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { ConfigError } from './config.ts'
import { DEFAULT_RATES, type LimitName, RATES, type Rates } from './http/limits.ts'

const RateSchema = Type.Union([
  Type.Null(),
  Type.Object(
    {
      perMinute: Type.Number({ exclusiveMinimum: 0, maximum: 1e9 }),
      burst: Type.Optional(Type.Integer({ minimum: 1, maximum: 1e9 })),
    },
    { additionalProperties: false },
  ),
])
const file = Compile(
  Type.Partial(
    Type.Object({
      ...Object.fromEntries(Object.keys(RATES).map((name) => [name, RateSchema])),
      openOrders: Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: 1e9 })]),
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
  if (!file.Check(setting)) {
    const [error] = file.Errors(setting)
    const where = error
      ? `${error.instancePath.slice(1) || 'the file'} ${error.message}`
      : 'invalid'
    throw new ConfigError(`MAYFLY_RATE_LIMITS: ${where}.`)
  }
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
