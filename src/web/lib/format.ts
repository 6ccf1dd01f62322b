/** Formats numbers, times and errors for people. */
import { faultIn, MayflyError } from '../../client/errors.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
// Creating a formatter costs more than formatting a long list.

const PARTS: Intl.DateTimeFormatOptions = {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
}
const withZone = new Intl.DateTimeFormat('en-GB', PARTS)
const inUtc = new Intl.DateTimeFormat('en-GB', { ...PARTS, timeZone: 'UTC' })
const timeOfDay = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** The reader's time zone, such as `Europe/Berlin`. */
export const ZONE: string = Intl.DateTimeFormat().resolvedOptions().timeZone

export const count = (value: number): string => whole.format(value)

export const sats = (value: number): string => `${whole.format(value)} sat`

/** What an amount is worth at the service's rate: `about €0.27`; empty if it knows none. */
export function worth(value: number, rate = globalThis.document?.documentElement.dataset.rate) {
  const [currency, perBitcoin] = rate?.split(' ') ?? []
  if (!currency || !perBitcoin) return ''
  const money = new Intl.NumberFormat('en', { style: 'currency', currency })
  const amount = (value / 100_000_000) * Number(perBitcoin)
  const least = 10 ** -(money.resolvedOptions().maximumFractionDigits ?? 0)
  return amount < least ? `less than ${money.format(least)}` : `about ${money.format(amount)}`
}

/** A size in its largest unit, to three digits or so. */
export function bytes(value: number, round: (value: number) => number = Math.round): string {
  if (value < 1024) return `${value} B`
  const [amount, unit] = value < 1024 ** 2 ? [value / 1024, 'KiB'] : [value / 1024 ** 2, 'MiB']
  const rounded = amount < 100 ? round(10 * amount) / 10 : round(amount)
  return `${rounded.toLocaleString('en')} ${unit}`
}

/** The date and time to the minute, with the zone: `22 Nov 2026, 11:00 CET`. */
export const when = (iso: string): string => withZone.format(new Date(iso))

/** When something ends and how long that is, or when it ended. */
export function endOf(iso: string, now: number): string {
  const left = Date.parse(iso) - now
  return left > 0 ? `Ends ${when(iso)}, in ${duration(left)}` : `Ended ${when(iso)}`
}

/** The same in UTC, for somebody in another zone. */
export const utc = (iso: string): string => inUtc.format(new Date(iso))

/** The time of day in the reader's zone, to the second. */
export const time = (iso: string): string => timeOfDay.format(new Date(iso))

/** A share of 1 in percent, rounded down: only what was never late is 100 %. */
export const percent = (share: number): string => `${Math.floor(share * 10_000) / 100} %`

/** `1 request`, `2 requests`. */
export const plural = (amount: number, noun: string): string =>
  `${whole.format(amount)} ${noun}${amount === 1 ? '' : 's'}`

/** How long ago something was, in one unit: `now`, `5 s ago`, `3 min ago`, `2 days ago`. */
export function ago(milliseconds: number): string {
  const [largest] = partsOf(milliseconds)
  return largest === undefined ? 'now' : `${largest} ago`
}

/** A duration in words, in its two largest units: `1 min 19 s`, `3 h`, `2 days 4 h`. Below zero is zero. */
export const duration = (milliseconds: number): string => partsOf(milliseconds).join(' ') || '0 s'

/** The largest unit and its neighbour: a day and some seconds is a day. */
function partsOf(milliseconds: number): string[] {
  let left = Math.max(0, Math.floor(milliseconds / 1000))
  const amounts = UNITS.map(([name, seconds]) => {
    const amount = Math.floor(left / seconds)
    left -= amount * seconds
    return amount === 0 ? '' : `${amount} ${name === 'day' && amount > 1 ? 'days' : name}`
  })
  const first = amounts.findIndex((text) => text !== '')
  return first === -1 ? [] : amounts.slice(first, first + 2).filter((text) => text !== '')
}

const UNITS = [
  ['day', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

/** What went wrong, where the money is, and how long to wait. */
export function sentence(error: unknown): string {
  const pause = pauseOf(error)
  return pause === 0 ? reasonOf(error) : `${reasonOf(error)} Try again in ${pause} s.`
}

/** The seconds that a busy service asks to wait, or 0. */
export const pauseOf = (error: unknown): number =>
  error instanceof MayflyError && error.status === 429 ? (error.retryAfterSeconds ?? 0) : 0

/** What went wrong, and where the money is. */
export function reasonOf(error: unknown): string {
  const isUnreachable = !(error instanceof MayflyError) || error.phrase === 'service unreachable'
  if (isUnreachable && !navigator.onLine) {
    return 'You are offline. Your data and payments are safe.'
  }
  if (isUnreachable) {
    return 'The service does not answer. Your data and payments are safe.'
  }
  const fault = faultIn(error)
  const told = fault === null ? error.phrase : `${error.phrase} (${fault})`
  return SENTENCES[error.phrase] ?? `The service answered: ${told}.`
}

/** While the checkout is closed. */
export const CLOSED =
  'Nothing can be bought now: this service cannot reach its Lightning node. Nothing was charged, and what you bought keeps working.'

const SENTENCES: Record<string, string> = {
  'checkout unavailable': CLOSED,
  'sold out':
    'Everything for today is sold, and sales begin again at midnight UTC. Nothing was charged, and what you bought keeps working.',
  'invalid plan': 'This plan is no longer on sale. Nothing was charged.',
  'price above the ceiling':
    'The price has changed. Nothing was charged; reload the page to see the new price.',
  'ciphertext too large':
    'The secret is larger than the plan allows. Nothing was charged; choose a larger plan.',
  'invalid reveal time':
    'The opening time is after this plan ends. Nothing was charged; choose an earlier time or a longer plan.',
  'invalid switch':
    'This switch cannot be used. Its monitor must be on time, and must last longer than this plan. Nothing was charged.',
  'order expired':
    'The invoice expired before it was paid. Nothing was charged. If your wallet is still sending a payment, wait until it fails before you try again.',
  'cannot be extended':
    'This cannot be extended: it has ended, is used up or suspended, or would last too long. Nothing was charged.',
  'order refunded': 'The operator has refunded this purchase. You owe nothing.',
  'paid but not collected':
    'The payment is proven, and the service has not delivered yet. Your payment is safe; try again soon.',
  'proof of payment required':
    'The order was paid, and goes to its payer alone. Recover it with the invoice and its preimage.',
  'already delivered':
    'This was already delivered and cannot be shown again. Use the key that was saved then. You owe nothing; do not pay again.',
  'order not found':
    'The service does not know this order. If you have paid, contact the operator.',
  'rate limited': 'Too many requests. Nothing was spent.',
  'service unavailable':
    'The service cannot reach its storage. Your payment is safe; try again soon.',
  'internal error': 'The service has failed. Your payment is safe: try again for the same order.',
  unauthorized: 'This key does not fit. Check that you loaded the whole key file.',
  'not found': 'The service has nothing for this key: it expired, was destroyed, or never existed.',
  'unexpected answer': 'This page does not understand the answer of the service. Reload the page.',
}
