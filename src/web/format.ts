/** Formats numbers, times and errors for people. */
import { faultIn, MayflyError } from '../client/errors.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
// Creating a formatter costs more than formatting a long list.
const dayAndTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

export const count = (value: number): string => whole.format(value)

export const sats = (value: number): string => `${whole.format(value)} sat`

export function bytes(value: number): string {
  if (value < 1024) return `${whole.format(value)} B`
  if (value < 1024 ** 2) return `${short.format(value / 1024)} KiB`
  return `${short.format(value / 1024 ** 2)} MiB`
}

/** The date and time in the user's own zone, to the second. */
export function moment(iso: string): string {
  return dayAndTime.format(new Date(iso))
}

/** A duration: as `4:07` if it is only minutes, otherwise in hours or days. */
export function remaining(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000))
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}:${String(seconds % 60).padStart(2, '0')}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} days ${hours % 24} h`
}

/** How long ago something was, in one unit: `now`, `5 s ago`, `3 min ago`, `2 days ago`. */
export function ago(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000)
  if (seconds < 1) return 'now'
  for (const [name, size] of UNITS) {
    const amount = Math.floor(seconds / size)
    if (amount > 0) return `${amount} ${name === 'day' && amount > 1 ? 'days' : name} ago`
  }
  return 'now'
}

/** A duration in words, in its two largest units: `1 min 19 s`, `3 h`, `2 days 4 h`. Below zero is zero. */
export function duration(milliseconds: number): string {
  let left = Math.max(0, Math.floor(milliseconds / 1000))
  const parts: string[] = []
  for (const [name, seconds] of UNITS) {
    const amount = Math.floor(left / seconds)
    left -= amount * seconds
    if (amount > 0) parts.push(`${amount} ${name === 'day' && amount > 1 ? 'days' : name}`)
    // Only neighbours: a day and some seconds is a day.
    else if (parts.length > 0) break
    if (parts.length === 2) break
  }
  return parts.length > 0 ? parts.join(' ') : '0 s'
}

const UNITS = [
  ['day', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

/** What went wrong, and where the money is. */
export function sentence(error: unknown): string {
  const isUnreachable = !(error instanceof MayflyError) || error.phrase === 'service unreachable'
  if (isUnreachable && !navigator.onLine) {
    return 'You are offline. Nothing is lost: what was stored or paid is kept by the service.'
  }
  if (isUnreachable) {
    return 'The service could not be reached. Nothing is lost: what was stored or paid is kept there.'
  }
  const fault = faultIn(error)
  const told = fault === null ? error.phrase : `${error.phrase} (${fault})`
  return SENTENCES[error.phrase] ?? `The service answered: ${told}.`
}

const SENTENCES: Record<string, string> = {
  'checkout unavailable':
    'The Lightning node of this service is away, so nothing can be bought right now. No invoice was made. What is already sold keeps working.',
  'invalid plan': 'This plan is not on sale any more. Nothing was charged.',
  'price above the ceiling':
    'The price has changed since this page was loaded. Nothing was charged; load it again to see the new price.',
  'ciphertext too large':
    'The encrypted bytes are more than this plan takes. Nothing was charged: choose a larger one.',
  'invalid reveal time':
    'The time to open lies outside the life of this plan. Nothing was charged: choose an earlier time, or a plan that lives longer.',
  'order expired':
    'The invoice ran out before it was paid. Nothing was charged. If a payment is still under way in your wallet, wait for it to fail before you try again.',
  'order refunded':
    'The service could not deliver this, and its operator has paid it back. Nothing is owed; to have it, buy it anew.',
  'already delivered':
    'This capability was handed out already and is not repeated. Nothing is owed; do not pay again.',
  'order not found': 'The service does not know this order. If you have paid, ask its operator.',
  'rate limited': 'Too many requests for now. Nothing was spent; try again in a minute.',
  'service unavailable':
    'The service cannot reach its store for the moment. A paid order is kept; try again shortly.',
  'internal error':
    'The service made a mistake. A paid order is kept: this page can ask for it again.',
  unauthorized: 'The token is not one of this kind. Check that the whole file was loaded.',
  'not found': 'There is nothing here for this token: it has expired, was destroyed, or never was.',
  'unexpected answer': 'The answer could not be understood. Is this the right service?',
}
