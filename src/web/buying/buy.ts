/** The page for buying: it asks for a product and a plan, then shows the invoice. */
import type { Catalog, CatchCapability, PulseCapability } from '../../client/index.ts'
import { createPayments, planOrder } from '../../client/payments.ts'
import { button, notice, tabs } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { bytes, count, sentence } from '../format.ts'
import { catalog } from '../service.ts'
import { boughtView } from './bought.ts'
import { createCheckout, type Steps } from './checkout.ts'
import { beginPurchase, endPurchase, keepProof, type Pending, pendingPurchase } from './pending.ts'
import { CLOSED, planButton } from './plan-button.ts'

type Product = Pending['product']

const NAMES: Record<Product, string> = { catch: 'CATCH', pulse: 'PULSE' }

const place = byId('checkout')
const checkout = createCheckout({
  place,
  buy,
  present: boughtView,
  asking: 'Asking for an invoice',
  keepOpen:
    'Keep this tab open until you have what you paid for. A reload goes on where it was; a closed tab loses the way to it.',
  onProof: keepProof,
  onEnded: endPurchase,
  onGivenUp: choose,
})

addEventListener('hashchange', () => {
  if (!pendingPurchase()) choose()
})
const interrupted = pendingPurchase()
if (interrupted) await checkout.pay(interrupted)
else await choose()

async function choose(): Promise<void> {
  try {
    showPlans(await catalog(), location.hash === '#pulse' ? 'pulse' : 'catch')
  } catch (error) {
    fill(
      place,
      el(
        'div',
        { class: 'stack' },
        notice('bad', el('p', {}, sentence(error))),
        button('Try again', choose),
      ),
    )
  }
}

function showPlans(onSale: Catalog, product: Product): void {
  const plans = el('div', { class: 'stack' })
  const about = el('p', { class: 'quiet' })
  const show = (chosen: Product): void => {
    const { description } = onSale.products[chosen]
    about.textContent = description
    fill(plans, ...planButtons(onSale, chosen))
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
        onChoose: (name) => {
          const chosen = name === NAMES.pulse ? 'pulse' : 'catch'
          history.replaceState(null, '', `#${chosen}`)
          show(chosen)
        },
      }),
      about,
      plans,
    ),
  )
}

function planButtons({ products, checkoutEnabled }: Catalog, product: Product): HTMLElement[] {
  const plans =
    product === 'catch'
      ? products.catch.plans.map((plan) => ({ plan, holds: catchLimits(plan) }))
      : products.pulse.plans.map((plan) => ({ plan, holds: pulseLimits(plan) }))
  return plans.map(({ plan, holds }) => {
    const { planId, priceSats } = plan
    return planButton(plan, {
      holds,
      isOpen: checkoutEnabled,
      onChoose: () => checkout.pay(beginPurchase({ product, planId, priceSats })),
    })
  })
}

async function buy(
  { product, planId, priceSats, idempotencyKey }: Pending,
  { http, ...steps }: Steps,
): Promise<CatchCapability | PulseCapability> {
  // The user pays at most the price that the page showed.
  const payments = createPayments(http, { maxSats: priceSats })
  const { preimage } = pendingPurchase() ?? {}
  const proof = preimage === undefined ? {} : { preimage }
  const bought = await payments.buy(planOrder(product, planId), {
    planId,
    idempotencyKey,
    ...proof,
    ...steps,
  })
  return bought as CatchCapability | PulseCapability
}

type CatchPlan = Catalog['products']['catch']['plans'][number]
type PulsePlan = Catalog['products']['pulse']['plans'][number]

function catchLimits({ requestLimit, storageLimitBytes, maxBytesPerRequest }: CatchPlan): string {
  return `${count(requestLimit)} requests, ${bytes(storageLimitBytes)} in all, ${bytes(maxBytesPerRequest)} each.`
}

function pulseLimits({ heartbeatLimit, suggestedCadenceSeconds }: PulsePlan): string {
  return `${count(heartbeatLimit)} pings: one every ${count(suggestedCadenceSeconds)} seconds, or when you say.`
}
