/** Shows an invoice: what it is for, its QR code, the ways to pay, and the time until it expires. */
import type { PaymentQuote } from '../../client/index.ts'
import { button } from '../components.ts'
import { el } from '../dom.ts'
import { remaining, sats } from '../format.ts'
import { clock } from '../service.ts'
import { meansOfPayment } from './means.ts'
import { type Terms, termsLine } from './terms.ts'

export type InvoiceView = {
  element: HTMLElement
  /** Shows whether the service is reachable, since the page polls it for the payment. */
  setReached(isReached: boolean): void
  /** Shows the remaining time. */
  tick(): void
}

export type InvoiceOptions = {
  terms: Terms
  giveUp: () => unknown
  /** The text below the invoice: what a reload or a closed tab would lose. */
  keepOpen: string
  /** Called with the proof after a wallet of this page has paid. */
  onProof: (preimage: string) => void
}

export function createInvoiceView(
  quote: PaymentQuote,
  { terms, giveUp, keepOpen, onProof }: InvoiceOptions,
): InvoiceView {
  const left = el('span', { class: 'number' })
  const state = el('p', { class: 'state', role: 'status', 'aria-live': 'polite' })
  const means = meansOfPayment(quote, onProof)
  let isReached = true

  function tick(): void {
    const milliseconds = Date.parse(quote.expiresAt) - clock.now()
    const isOver = milliseconds <= 0
    left.textContent = isOver ? 'Expired' : `Time left: ${remaining(milliseconds)}`
    // A wallet would refuse an expired invoice.
    means.inert = isOver
    state.dataset.state = isReached ? 'waiting' : 'lost'
    const text = stateText({ isReached, isOver })
    // A screen reader announces the text each time that it is set.
    if (state.textContent !== text) state.textContent = text
  }

  const element = el(
    'div',
    { class: 'card stack narrow' },
    el(
      'div',
      { class: 'purchase' },
      el('p', { class: 'terms' }, termsLine(terms)),
      el(
        'div',
        { class: 'row between' },
        el('h2', { tabindex: '-1', id: 'step' }, `Pay ${sats(quote.amountSats)}`),
        el('p', { class: 'small quiet' }, left),
      ),
      terms.limits !== '' && el('p', { class: 'small quiet' }, terms.limits),
    ),
    means,
    state,
    el('p', { class: 'small quiet' }, keepOpen),
    el('div', { class: 'row' }, button('Choose another plan', giveUp, { kind: 'small' })),
  )
  return {
    element,
    tick,
    setReached(now) {
      isReached = now
      tick()
    },
  }
}

function stateText({ isReached, isOver }: { isReached: boolean; isOver: boolean }): string {
  if (!isReached) {
    return navigator.onLine
      ? 'Can’t reach the service. Retrying; your payment is safe.'
      : 'You are offline. Retrying; your payment is safe.'
  }
  if (isOver) return 'The invoice has expired. Checking whether it was paid…'
  return 'Waiting for payment…'
}
