/** What is bought, in words: the thing, its plan, how long it lives, and its limits. */
import type { Catalog } from '../../client/index.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import { bytes, CLOSED, count, plural, sats } from './format.ts'

/** The terms of a purchase as the page showed them. The order keeps them, whatever the catalogue says later. */
export type Terms = {
  product: Product
  planId: PlanId
  priceSats: number
  /** `24 hours`. */
  lifetime: string
  /** Such as `100 requests`, `5 MiB in total`. */
  limits: readonly string[]
}

/** What a product's key opens, the page that does, what it says while nothing is open, and where one is got. */
export const THINGS = {
  catch: {
    noun: 'inbox',
    an: 'an inbox',
    opens: 'an inbox',
    get: { href: '/buy#catch', text: 'Buy an inbox' },
    title: 'Inbox',
    page: '/catch',
    about: 'An inbox is an address that stores every request it gets, exact to the byte.',
  },
  whisper: {
    noun: 'secret',
    an: 'a secret',
    opens: 'a receipt',
    get: { href: '/whisper', text: 'Write a secret' },
    title: 'Secret',
    page: '/receipt',
    about: 'A receipt shows when your secret was read, and can destroy it. It cannot open it.',
  },
  pulse: {
    noun: 'monitor',
    an: 'a monitor',
    opens: 'a monitor',
    get: { href: '/buy#pulse', text: 'Buy a monitor' },
    title: 'Monitor',
    page: '/pulse',
    about:
      'A monitor waits for the pings of your job. If they stop, or a run fails, you are alerted.',
  },
} as const satisfies Record<Product, object>

type Plans = { [Name in Product]: Catalog['products'][Name]['plans'][number] }

/** A plan of the catalogue with its terms. */
export type Offer<Name extends Product = Product> = {
  plan: Plans[Name]
  terms: Terms & { product: Name }
}

export function offersOf<Name extends Product>(onSale: Catalog, product: Name): Offer<Name>[] {
  const plans = onSale.products[product].plans as Plans[Name][]
  return plans.map((plan) => ({ plan, terms: termsOf(product, plan) }))
}

/** Why nothing at all can be bought now, or null. */
export function whyClosed({ checkoutEnabled, products }: Catalog): string | null {
  if (!checkoutEnabled) return CLOSED
  const isOnSale = Object.values(products).some(({ plans }) =>
    plans.some(({ available }) => available),
  )
  return isOnSale ? null : SOLD_OUT
}

/** The catalogue does not tell a day that is sold out from a service that sells no more. */
const SOLD_OUT =
  'Nothing is on sale now. If today is sold out, sales begin again at midnight UTC. What you bought keeps working.'

function termsOf<Name extends Product>(product: Name, plan: Plans[Name]): Offer<Name>['terms'] {
  const { planId, priceSats, durationLabel } = plan
  return { product, planId, priceSats, lifetime: durationLabel, limits: limitsOf(plan) }
}

function limitsOf(plan: Plans[Product]): string[] {
  if ('requestLimit' in plan) {
    const { requestLimit, storageLimitBytes, maxBytesPerRequest } = plan
    return [
      plural(requestLimit, 'request'),
      `${bytes(storageLimitBytes)} in total`,
      `${bytes(maxBytesPerRequest)} per request`,
    ]
  }
  if ('heartbeatLimit' in plan) {
    const every = spell(plan.suggestedCadenceSeconds)
    return [`${count(plan.heartbeatLimit)} pings`, `enough for one every ${every}`]
  }
  return [plural(plan.readLimit, 'read')]
}

/** `Spark` for `spark`. */
export function planTitle(planId: string | undefined): string {
  return planId === undefined ? '' : `${planId[0]?.toUpperCase()}${planId.slice(1)}`
}

/** The terms in a line: `Inbox · Spark · 24 hours`. */
export function termsLine({ product, planId, lifetime }: Terms): string {
  return `${THINGS[product].title} · ${planTitle(planId)} · ${lifetime}`
}

/** The terms with the price: `Inbox · Spark · 24 hours · 100 sat`. */
export const termsWithPrice = (terms: Terms): string =>
  `${termsLine(terms)} · ${sats(terms.priceSats)}`

/** `minute`, `5 minutes`, `hour`, `90 seconds`: what stands after `every`. */
export function spell(seconds: number): string {
  const [unit, size] =
    UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? (['second', 1] as const)
  const number = seconds / size
  return number === 1 ? unit : `${count(number)} ${unit}s`
}

const UNITS = [
  ['week', 7 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** The milliseconds of `24 hours` or `1 week`, or null for any other words: then the service alone knows. */
export function lifetimeMs(label: string): number | null {
  const [, number, unit] = /^(\d{1,6}) (minute|hour|day|week)s?$/i.exec(label.trim()) ?? []
  const [, size] = UNITS.find(([name]) => name === unit?.toLowerCase()) ?? []
  return size === undefined ? null : Number(number) * size * 1_000
}
