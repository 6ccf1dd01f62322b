/**
 * What is checked before an invoice is shown or handed to a wallet: one list, for the SDK, the command line and the
 * tools of hosts. The budget of a day is the store's, which refuses to write `paying`.
 */
import { isObject } from '../lib/json.ts'
import { decodeInvoice, InvalidInvoice, type Invoice } from '../protocol/bolt11.ts'
import { MayflyError } from './errors.ts'
import type { ApiResponse } from './http.ts'
import type { PaymentQuote } from './purchase.ts'

/** What was asked for, and what it may cost. */
export type Asked = {
  product: string | null
  planId: string | null
  maxSats: number
  /** Our clock and the service's, whichever is later, in unix milliseconds. */
  now: number
}

/** Networks whose invoices may be paid. */
const NETWORKS: readonly string[] = ['mainnet', 'regtest', 'signet']

/**
 * Checks a quote against its invoice, and both against what was asked for.
 * @throws MayflyError `price above the ceiling`, `invoice disagrees` or `invoice expired`.
 */
export function checkQuote(quote: PaymentQuote, asked: Asked): void {
  const invoice = invoiceOf(quote)
  const { maxSats, now } = asked
  // The wallet pays the invoice's amount, which may differ from the quote's.
  const priceMsat = Math.max(msatOf(quote.amountSats), invoice.amountMsat)
  const isBelow = priceMsat <= maxSats * 1000
  // Written as `<=`, so that a ceiling of NaN refuses every price.
  if (!isBelow) {
    const cause = new RangeError(`${priceMsat / 1000} sat is above the ceiling of ${maxSats} sat`)
    throw new MayflyError('price above the ceiling', 0, { cause })
  }
  const agrees =
    NETWORKS.includes(invoice.network) &&
    invoice.network === quote.network &&
    invoice.amountMsat === msatOf(quote.amountSats) &&
    invoice.paymentHash === quote.paymentHash &&
    invoice.expiresAt === Date.parse(quote.expiresAt) &&
    quote.product === asked.product &&
    quote.planId === asked.planId
  if (!agrees) throw disagrees()
  if (invoice.expiresAt <= now) throw new MayflyError('invoice expired', 0)
}

function invoiceOf({ bolt11 }: PaymentQuote): Invoice & { amountMsat: number } {
  try {
    const invoice = decodeInvoice(bolt11)
    const { amountMsat } = invoice
    // An invoice without an amount lets its payer choose, so there is nothing to compare.
    if (amountMsat !== null) return { ...invoice, amountMsat }
  } catch (error) {
    if (!(error instanceof InvalidInvoice)) throw error
  }
  throw disagrees()
}

/** An amount in whole millisatoshis. Of a part of a satoshi, a product alone would not be whole. */
export const msatOf = (sats: number): number => Math.round(sats * 1000)

/** The price of a plan in a catalogue, which a stranger wrote. Null if it names none. */
export function priceIn(catalog: unknown, product: string, planId: string | null): number | null {
  type Catalog = { products?: Record<string, { plans?: unknown }> }
  const plans = (catalog as Catalog | null)?.products?.[product]?.plans
  const plan: unknown = Array.isArray(plans) && plans.find((each) => each?.planId === planId)
  return isObject(plan) && typeof plan.priceSats === 'number' ? plan.priceSats : null
}

/** The longest quote, with room for members of a newer service. It is kept as it is. */
const MAX_QUOTE_CHARS = 16 * 1024

/** The quote in a 402 answer. @throws MayflyError `unexpected answer`. */
export function quoteOf({ status, body }: ApiResponse): PaymentQuote {
  const quote = (typeof body === 'object' ? body : null) as Partial<PaymentQuote> | null
  const { orderId, bolt11, paymentHash, expiresAt, amountSats } = quote ?? {}
  const isQuote =
    [orderId, bolt11, paymentHash, expiresAt].every((text) => typeof text === 'string') &&
    Number.isSafeInteger(amountSats) &&
    Number(amountSats) > 0 &&
    JSON.stringify(quote).length <= MAX_QUOTE_CHARS
  if (!isQuote) throw new MayflyError('unexpected answer', status)
  return quote as PaymentQuote
}

/** Compares invoices. They are bech32, which is case-insensitive. */
export const isSameInvoice = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** The parts of an offer contradict each other, so nothing is paid. */
export const disagrees = (): MayflyError => new MayflyError('invoice disagrees', 0)
