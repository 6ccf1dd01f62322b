/** What is bought, in words: the product, its plan, how long it lives, and its limits. */
import type { Catalog } from '../../client/index.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import { bytes, count, sats } from '../format.ts'

/** The terms of a purchase as the page showed them. The order keeps them, whatever the catalogue says later. */
export type Terms = {
  product: Product
  planId: PlanId
  priceSats: number
  /** `24 hours`. */
  lifetime: string
  /** A sentence, such as `Up to 100 requests, 5 MiB total, 64 KiB per request.` */
  limits: string
}

/** What a product's capability opens. */
export const NOUNS: Record<Product, { noun: string; article: string; start: string }> = {
  catch: { noun: 'inbox', article: 'an inbox', start: 'Start an inbox' },
  whisper: { noun: 'whisper', article: 'a whisper', start: 'Write a whisper' },
  pulse: { noun: 'monitor', article: 'a monitor', start: 'Start a monitor' },
}

type Plans = { [Name in Product]: Catalog['products'][Name]['plans'][number] }

/** A plan of the catalogue with its terms. */
export type Offer<Name extends Product = Product> = { plan: Plans[Name]; terms: Terms }

export function offersOf(onSale: Catalog, product: Product): Offer[] {
  const { catch: inbox, whisper, pulse } = onSale.products
  if (product === 'catch') {
    return inbox.plans.map((plan) => ({ plan, terms: termsOf(product, plan, inboxLimits(plan)) }))
  }
  if (product === 'pulse') {
    return pulse.plans.map((plan) => ({ plan, terms: termsOf(product, plan, pulseLimits(plan)) }))
  }
  return whisper.plans.map((plan) => ({ plan, terms: termsOf(product, plan, whisperLimits(plan)) }))
}

/** `Spark` for `spark`. */
export function planTitle(planId: string | undefined): string {
  return planId === undefined ? '' : `${planId[0]?.toUpperCase()}${planId.slice(1)}`
}

/** The terms in a line: `Inbox · Spark · 24 hours`. */
export function termsLine({ product, planId, lifetime }: Terms): string {
  const { noun } = NOUNS[product]
  const name = `${noun[0]?.toUpperCase()}${noun.slice(1)}`
  return [name, planTitle(planId), lifetime].filter((part) => part !== '').join(' · ')
}

/** The terms in a sentence: `An inbox: Spark, 24 hours, 100 sat.` */
export function termsSentence({ product, planId, lifetime, priceSats }: Terms): string {
  const { article } = NOUNS[product]
  const parts = [planTitle(planId), lifetime, sats(priceSats)].filter((part) => part !== '')
  return `${article[0]?.toUpperCase()}${article.slice(1)}: ${parts.join(', ')}.`
}

function termsOf(product: Product, plan: Plans[Product], limits: string): Terms {
  const { planId, priceSats, durationLabel } = plan
  return { product, planId, priceSats, lifetime: durationLabel, limits }
}

function inboxLimits({ requestLimit, storageLimitBytes, maxBytesPerRequest }: Plans['catch']) {
  return `Up to ${count(requestLimit)} requests, ${bytes(storageLimitBytes)} total, ${bytes(maxBytesPerRequest)} per request.`
}

function pulseLimits({ heartbeatLimit, suggestedCadenceSeconds }: Plans['pulse']): string {
  return `Up to ${count(heartbeatLimit)} pings, enough for one every ${spell(suggestedCadenceSeconds)}. You set the interval.`
}

/** What is said of a whisper whose writer has chosen how often it can be read. */
export const readsChosen = (reads: number): string =>
  reads === 1 ? 'It can be read once.' : `It can be read ${count(reads)} times in total.`

function whisperLimits({ readLimit }: Plans['whisper']): string {
  return `Up to ${count(readLimit)} reads.`
}

/** `minute`, `5 minutes`, `hour`, `90 seconds`: what stands after `every`. */
function spell(seconds: number): string {
  const [unit, size] =
    UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? (['second', 1] as const)
  const number = seconds / size
  return number === 1 ? unit : `${count(number)} ${unit}s`
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const
