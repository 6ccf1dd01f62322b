/** What a bitcoin costs in money, so that pages can show a price in it too. Nothing is sold by it. */
import type { Logger } from 'pino'
import { boundedBytes } from '../lib/bytes.ts'
import type { SteadyClock } from '../lib/clock.ts'
import type { RateSource } from './settings/operator.ts'

export const RATE_EVERY_MS = 10 * 60_000
/** An older rate is not shown. */
const MAX_AGE_MS = 60 * 60_000
const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

/** @param stopping ends a request under way. */
export function createExchangeRate(
  source: RateSource,
  { clock, log, stopping }: { clock: SteadyClock; log: Logger; stopping: AbortSignal },
) {
  let known: { perBitcoin: number; at: number } | null = null
  return {
    /** Asks the source. A rate that was known stays if the source gives none. */
    async look(): Promise<void> {
      const at = clock.monotonic()
      try {
        known = { perBitcoin: await ask(source, stopping), at }
      } catch (error) {
        // fetch says only that it failed, and why in the cause.
        const reason = error instanceof Error ? (error.cause ?? error) : error
        if (!stopping.aborted) log.warn({ event: 'exchange_rate.failed', reason: String(reason) })
      }
    },
    /** Such as `EUR 84321.5` for one bitcoin; null while it is unknown. */
    current(): string | null {
      if (known === null || clock.monotonic() - known.at > MAX_AGE_MS) return null
      return `${source.currency} ${known.perBitcoin}`
    },
  }
}

/** @throws Error if the answer has no rate. */
async function ask({ url, currency }: RateSource, stopping: AbortSignal): Promise<number> {
  const answer = await fetch(url, {
    redirect: 'error',
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), stopping]),
  })
  const tooLarge = () => new Error('the answer is too large')
  const body = await boundedBytes(answer.body ?? [], MAX_ANSWER_BYTES, tooLarge)
  if (!answer.ok) throw new Error(`the answer has status ${answer.status}`)
  const rates: unknown = JSON.parse(Buffer.from(body).toString())
  const rate: unknown = Object(rates)[currency]
  if (typeof rate !== 'number' || !Number.isFinite(rate) || rate <= 0) {
    throw new Error(`the answer has no number ${currency}`)
  }
  return rate
}
