/** The front page: what is on sale, with the current prices. */
import type { Catalog } from '../client/index.ts'
import { button, notice } from './components.ts'
import { byId, el, fill } from './dom.ts'
import { sats } from './format.ts'
import { catalog } from './service.ts'

const PRODUCTS = ['catch', 'whisper', 'pulse'] as const
const place = byId('checkout-state')

await show()

async function show(): Promise<void> {
  try {
    const onSale = await catalog()
    showPrices(onSale)
    if (onSale.checkoutEnabled) fill(place)
    else say('The checkout is closed for now. What is already sold keeps working.')
  } catch {
    for (const product of PRODUCTS) {
      fill(byId(`prices-${product}`), el('li', { class: 'quiet' }, 'Not loaded.'))
    }
    say('The prices could not be loaded. ', button('Try again', show, { kind: 'link' }))
  }
}

function showPrices({ products }: Catalog): void {
  for (const product of PRODUCTS) {
    const lines = products[product].plans.map(({ planId, durationLabel, priceSats, available }) =>
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

function say(...parts: (Node | string)[]): void {
  fill(place, notice('warn', el('p', {}, ...parts)))
}
