/** The front page: what is on sale, with the current prices, and what is kept in this browser. */
import type { Catalog } from '../client/index.ts'
import { type KeptThing, keptThings, openKept } from './buying/keeping.ts'
import { planTitle } from './buying/terms.ts'
import { button, notice } from './components.ts'
import { byId, el, fill } from './dom.ts'
import { plainly } from './foreign.ts'
import { moment, sats } from './format.ts'
import { catalog, clock } from './service.ts'

/** The products, each with where its prices lead. */
const PRODUCTS = {
  catch: '/buy#catch/',
  whisper: '/whisper#',
  pulse: '/buy#pulse/',
} as const
const NOUNS = { catch: 'Inbox', pulse: 'Monitor', whisper: 'Receipt of a whisper' } as const

const place = byId('checkout-state')

showThings()
// Another tab may keep something, or remove it.
addEventListener('storage', showThings)
addEventListener('pageshow', showThings)
await show()

async function show(): Promise<void> {
  try {
    const onSale = await catalog()
    showPrices(onSale)
    if (onSale.checkoutEnabled) fill(place)
    else say('The checkout is closed for now. What you already bought keeps working.')
  } catch {
    for (const product of Object.keys(PRODUCTS)) {
      fill(byId(`prices-${product}`), el('li', { class: 'quiet' }, 'Not loaded.'))
    }
    say('The prices could not be loaded. ', button('Try again', show, { kind: 'link' }))
  }
}

function showPrices({ products }: Catalog): void {
  for (const product of Object.keys(PRODUCTS) as (keyof typeof PRODUCTS)[]) {
    const lines = products[product].plans.map(({ planId, durationLabel, priceSats, available }) => {
      const name = el('span', {}, `${planTitle(planId)} · ${durationLabel}`)
      if (!available) {
        return el('li', { class: 'price-line quiet' }, name, el('span', {}, 'not on sale'))
      }
      const href = PRODUCTS[product] + planId
      const price = el('span', { class: 'amount' }, sats(priceSats))
      return el('li', {}, el('a', { class: 'price-line', href }, name, ' ', price))
    })
    fill(byId(`prices-${product}`), ...lines)
  }
}

function showThings(): void {
  const things = keptThings()
  byId('your-things').hidden = things.length === 0
  byId('to-your-things').hidden = things.length === 0
  fill(byId('things'), ...things.map(thingLine))
}

function thingLine({ publicId, product, name, plan, expiresAt }: KeptThing): HTMLElement {
  const shown = plainly(name)
  const isOver = Date.parse(expiresAt) <= clock.now()
  const about = [NOUNS[product], plan, `${isOver ? 'ended' : 'ends'} ${moment(expiresAt)}`]
  // It was removed in another tab if it cannot be opened.
  const open = button('Open', () => openKept(publicId) || showThings(), { kind: 'small' })
  open.setAttribute('aria-label', `Open ${shown}`)
  return el(
    'li',
    { class: 'row between' },
    el(
      'div',
      {},
      el('strong', { dir: 'auto' }, shown),
      el('div', { class: 'small quiet' }, about.filter((part) => part !== '').join(' · ')),
    ),
    open,
  )
}

function say(...parts: (Node | string)[]): void {
  fill(place, notice('warn', el('p', {}, ...parts)))
}
