/** Shows an invoice: its QR code, the ways to pay, and the time until it expires. */
import type { PaymentQuote } from '../../client/index.ts'
import { button, copyButton, toast } from '../components.ts'
import { el } from '../dom.ts'
import { remaining, sats } from '../format.ts'
import { clock } from '../service.ts'
import { qrCode } from './qr.ts'

const isSimulator = document.documentElement.dataset.mode === 'simulator'

export type InvoiceView = {
  element: HTMLElement
  /** Shows whether the service is reachable, since the page polls it for the payment. */
  setReached(isReached: boolean): void
  /** Shows the remaining time. */
  tick(): void
}

export type InvoiceOptions = {
  giveUp: () => unknown
  /** The text below the invoice: what a reload or a closed tab would lose. */
  keepOpen: string
  /** Called with the proof after a wallet of this page has paid. */
  onProof: (preimage: string) => void
}

export function createInvoiceView(
  { bolt11, amountSats, expiresAt }: PaymentQuote,
  { giveUp, keepOpen, onProof }: InvoiceOptions,
): InvoiceView {
  const left = el('span', { class: 'number' })
  const state = el('p', { class: 'state', role: 'status', 'aria-live': 'polite' })
  const means = meansOfPayment(bolt11, onProof)
  let isReached = true

  function tick(): void {
    const milliseconds = Date.parse(expiresAt) - clock.now()
    const isOver = milliseconds <= 0
    left.textContent = isOver ? 'over' : remaining(milliseconds)
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
      { class: 'row between' },
      el('h2', { tabindex: '-1', id: 'step' }, `Pay ${sats(amountSats)}`),
      el('p', { class: 'small quiet' }, 'Time left: ', left),
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
  if (!isReached) return 'The service is away. Asking again; what is paid is kept.'
  if (isOver) return 'The time is over. Checking whether it was paid…'
  return 'Waiting for the payment…'
}

/** The QR code, and a link to a wallet or the simulator's button. */
function meansOfPayment(bolt11: string, onProof: (preimage: string) => void): HTMLElement {
  const simulated = button('Pay (simulator)', () => paySimulated(bolt11, simulated, onProof), {
    kind: 'primary wide',
  })
  const wallet = el(
    'a',
    { class: isSimulator ? 'button' : 'button primary', href: `lightning:${bolt11}` },
    'Open in a wallet',
  )
  return el(
    'div',
    { class: 'stack' },
    el(
      'div',
      { class: 'qr' },
      qrCode(`lightning:${bolt11}`.toUpperCase(), 'QR code of the Lightning invoice'),
    ),
    isSimulator && simulated,
    el(
      'div',
      { class: 'row even' },
      wallet,
      copyButton(() => bolt11, { label: 'Copy the invoice' }),
    ),
  )
}

/** Pays like a wallet. The page learns of the payment from the service. */
async function paySimulated(
  bolt11: string,
  button: HTMLButtonElement,
  onProof: (preimage: string) => void,
): Promise<void> {
  button.disabled = true
  try {
    const answer = await fetch('/simulator/pay', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ bolt11 }),
    })
    button.disabled = answer.ok
    if (!answer.ok) return toast('The simulator did not pay. Nothing was charged.')
    const { preimage } = (await answer.json()) as { preimage?: unknown }
    if (typeof preimage === 'string') onProof(preimage)
  } catch {
    toast('The simulator could not be reached. Nothing was charged.')
    button.disabled = false
  }
}
