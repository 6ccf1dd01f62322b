/** Reloads the files of plans and rates while the service runs: both together, or neither. */
import type { Logger } from 'pino'
import type { Rates } from '../http/limits.ts'
import { messageOf } from '../lib/errors.ts'
import type { Reloaded } from './config.ts'
import type { OnSale } from './on-sale.ts'
import { ALL_LIMITS, readAllPlans } from './products.ts'
import { readRates } from './rates.ts'

/** Takes what `read` returns into use, or refuses it whole: then all stays as it was. Never throws. */
export type Reload = (read: () => Reloaded) => void

export function createReload({
  onSale,
  reloadRates,
  isSimulator,
  log,
}: {
  onSale: OnSale
  /** @returns the names of the limits that differ. */
  reloadRates(rates: Rates): string[]
  isSimulator: boolean
  log: Logger
}): Reload {
  return (read) => {
    try {
      const { catalog, rateLimits } = read()
      // Both are checked before either is used.
      const plans = readAllPlans(catalog)
      const rates = readRates(rateLimits, ALL_LIMITS, { isSimulator })
      const changed = { plans: onSale.replace(plans), limits: reloadRates(rates) }
      log.info({ event: 'settings.reloaded', ...changed })
    } catch (error) {
      // A file that is half written, for instance: the service goes on with what it has.
      log.error({ event: 'settings.refused', reason: messageOf(error) })
    }
  }
}
