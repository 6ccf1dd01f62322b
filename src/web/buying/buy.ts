/**
 * The page for buying: it asks for a product and a plan, then shows the invoice. After the # of its address may stand
 * a product, or a product and a plan: `/buy#catch/spark` asks for that invoice at once.
 */
import type { Catalog, CatchCapability, PulseCapability } from '../../client/index.ts'
import { createPayments, planOrder } from '../../client/payments.ts'
import { isPlanId, type PlanId } from '../../lib/product-names.ts'
import { button, notice, tabs, working } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { sentence } from '../format.ts'
import { catalog, clock } from '../service.ts'
import { boughtView } from './bought.ts'
import { createCheckout, type Steps } from './checkout.ts'
import { guardTab } from './guard.ts'
import {
  beginPurchase,
  endPurchase,
  notePurchase,
  type Pending,
  pendingPurchases,
} from './pending.ts'
import { CLOSED, CLOSED_PLAN, planButton } from './plan-button.ts'
import { NOUNS, offersOf, type Terms } from './terms.ts'
import { showTitle } from './title.ts'
import { unfinishedView } from './unfinished.ts'

type Product = Pending['product']
/** What the address asks for. */
type Wanted = { product?: Product; planId?: PlanId }
type Order = { terms: Terms; pending: Pending }

const NAMES: Record<Product, string> = { catch: 'CATCH', pulse: 'PULSE' }
const ABOUT: Record<Product, string> = {
  catch:
    'A webhook inbox: it stores each request, exact to the byte. You get the access key to it.',
  pulse:
    'A monitor for your cron jobs: if the pings stop it turns late. You get the access key to it.',
}

const place = byId('checkout')
const checkout = createCheckout<Order, CatchCapability | PulseCapability>({
  place,
  buy,
  present: boughtView,
  asking: 'Asking for an invoice',
  keepOpen:
    'This page updates as soon as you pay. Keep this tab open until you have what you paid for. You can reload it, but if you close this tab you cannot get it back.',
  onProof: ({ pending }, preimage) => notePurchase(pending, { preimage }),
  onPaid: ({ pending }) => notePurchase(pending, { isPaid: true }),
  onEnded: ({ pending }) => endPurchase(pending),
  onGivenUp: ({ pending }) => choose({ product: pending.product }),
  renewalOf:
    ({ pending: { product, planId } }) =>
    () =>
      choose({ product, planId }),
})

// Also while something else is shown: what is paid and not saved is in this tab alone.
guardTab(() => pendingPurchases().some(({ isPaid }) => isPaid))
addEventListener('hashchange', route)
await route()

/** Goes on with the purchase that the address asks for, or begins it. Another one is asked about first. */
function route(): Promise<void> | void {
  checkout.stop()
  const wanted = wantedBy(location.hash)
  const all = pendingPurchases()
  const same = all.find(
    ({ product, planId }) =>
      (wanted.product ?? product) === product && (wanted.planId ?? planId) === planId,
  )
  if (same) return resume(same)
  // First what is paid and not saved, since that is what could be lost.
  const other = all.find(({ isPaid }) => isPaid) ?? all[0]
  if (!other) return choose(wanted)
  fill(place, unfinishedView(other, { wanted, resume: () => resume(other), start: choose }))
  showTitle(`Unfinished: ${NOUNS[other.product].noun}`)
  byId('step').focus()
}

function resume(pending: Pending): Promise<void> {
  showInAddress(pending.product)
  return checkout.pay({ terms: pending, pending })
}

/** Shows the plans, or asks for the invoice of the plan that is wanted. */
async function choose({ product = 'catch', planId }: Wanted): Promise<void> {
  showTitle(`Buy ${NOUNS[product].article}`)
  if (planId) fill(place, working('Asking for an invoice'))
  try {
    const onSale = await catalog()
    const offer = offersOf(onSale, product).find(({ plan }) => plan.planId === planId)
    if (offer?.plan.available && onSale.checkoutEnabled) await begin(offer.terms)
    else showPlans(onSale, product)
  } catch (error) {
    const again = button('Try again', () => choose({ product, ...(planId ? { planId } : {}) }))
    const why = notice('bad', el('p', {}, sentence(error)))
    fill(place, el('div', { class: 'stack' }, why, again))
  }
}

function begin(terms: Terms): Promise<void> | undefined {
  const { product } = terms
  if (product === 'whisper') return
  return resume(beginPurchase({ ...terms, product }))
}

function showPlans(onSale: Catalog, product: Product): void {
  const plans = el('div', { class: 'stack' })
  const about = el('p', { class: 'quiet' })
  const show = (chosen: Product): void => {
    showInAddress(chosen)
    showTitle(`Buy ${NOUNS[chosen].article}`)
    about.textContent = ABOUT[chosen]
    const refusal = onSale.checkoutEnabled ? null : CLOSED_PLAN
    const buttons = offersOf(onSale, chosen).map((offer) =>
      planButton(offer, { refusal, onChoose: () => begin(offer.terms) }),
    )
    fill(plans, ...buttons)
  }
  show(product)
  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      !onSale.checkoutEnabled && notice('warn', el('p', {}, CLOSED)),
      tabs('Product', Object.values(NAMES), {
        chosen: NAMES[product],
        onChoose: (name) => show(name === NAMES.pulse ? 'pulse' : 'catch'),
      }),
      about,
      plans,
    ),
  )
}

async function buy(
  { pending: { product, planId, priceSats, idempotencyKey } }: Order,
  { http, ...steps }: Steps,
): Promise<CatchCapability | PulseCapability> {
  // The user pays at most the price that the page showed.
  const payments = createPayments(http, { maxSats: priceSats, now: clock.now })
  // Stored since, if a wallet of this page has paid.
  const { preimage } =
    pendingPurchases().find((each) => each.idempotencyKey === idempotencyKey) ?? {}
  const bought = await payments.buy(planOrder(product, planId), {
    planId,
    idempotencyKey,
    ...(preimage === undefined ? {} : { preimage }),
    ...steps,
  })
  return bought as CatchCapability | PulseCapability
}

/** Reads `#catch` or `#catch/spark`. */
function wantedBy(hash: string): Wanted {
  const [product, planId] = hash.slice(1).split('/')
  if (product !== 'catch' && product !== 'pulse') return {}
  return isPlanId(planId) ? { product, planId } : { product }
}

/** Leaves the product in the address, without a plan: a reload later must not ask for another invoice. */
function showInAddress(product: Product): void {
  history.replaceState(null, '', `#${product}`)
}
