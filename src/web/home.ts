/** The front page: what is on sale, with the prices of now. */
import type { Catalog } from '../client/index.ts'
import { notice } from './components.ts'
import { byId, el, fill } from './dom.ts'
import { sats, sentence } from './format.ts'
import { catalog } from './service.ts'

try {
  const onSale = await catalog()
  showPrices(onSale)
  if (!onSale.checkoutEnabled)
    say(
      'The checkout is closed: the Lightning node of this service is away. What is already sold keeps working.',
    )
} catch (error) {
  say(sentence(error))
}

function showPrices({ products }: Catalog): void {
  for (const [product, { plans }] of Object.entries(products)) {
    const lines = plans.map(({ planId, durationLabel, priceSats, available }) =>
      el(
        'li',
        { title: planId },
        el('span', {}, durationLabel),
        el('span', {}, available ? sats(priceSats) : 'not on sale'),
      ),
    )
    fill(byId(`prices-${product}`), ...lines)
  }
}

function say(text: string): void {
  byId('checkout-state').append(notice('warn', el('p', {}, text)))
}
