/** The checkout, from the order to the capability. */
import { MayflyError } from '../../client/errors.ts'
import type { Http } from '../../client/http.ts'
import type { PaymentQuote } from '../../client/index.ts'
import { button, confirmed, notice, working } from '../components.ts'
import { byId, type Child, el, fill } from '../dom.ts'
import { sentence } from '../format.ts'
import { everySecond, watchfulService } from '../service.ts'
import { createInvoiceView, type InvoiceView } from './invoice-view.ts'
import { guardTab } from './pending.ts'

export type Checkout<Order> = {
  /** Shows the invoice of an order and stays until it is paid, given up or refused. */
  pay(order: Order): Promise<void>
}

export type CheckoutOptions<Order, Bought> = {
  /** Where the steps are shown. */
  place: HTMLElement
  /** Requests the order and resolves to the capability. A repeat requests the same order. */
  buy(order: Order, steps: Steps): Promise<Bought>
  /** Shows the capability, and with it `state`, which shows the last call of `onSaved`. */
  present(bought: Bought, saving: Saving): Child[]
  /** The text while the order is requested. */
  asking: string
  /** The text below the invoice: what a reload or a closed tab would lose. */
  keepOpen: string
  /** Called with the proof after a wallet of this page has paid. Stores the proof with the order's key. */
  onProof(preimage: string): void
  /** The purchase is over: its capability is saved, or there is none. */
  onEnded(): void
  /** The user wants to choose again. */
  onGivenUp(): void
}

export type Saving = {
  /** Called with the way in which the user saved the capability. */
  onSaved: (how: string) => void
  /** Shows that it was saved, beside the buttons for it. */
  state: HTMLElement
}

/** What a purchase of the SDK needs besides its terms. */
export type Steps = {
  /** The service. Shows whether it is reachable while the order is polled. */
  http: Http
  signal: AbortSignal
  onInvoice: (quote: PaymentQuote) => void
}

export function createCheckout<Order, Bought>({
  place,
  buy,
  present,
  asking,
  keepOpen,
  onProof,
  onEnded,
  onGivenUp,
}: CheckoutOptions<Order, Bought>): Checkout<Order> {
  let isAtStake = false
  guardTab(() => isAtStake)

  async function pay(order: Order): Promise<void> {
    const stop = new AbortController()
    let invoice: InvoiceView | null = null
    fill(place, working(asking))
    try {
      const bought = await buy(order, {
        http: watchfulService((isReached) => invoice?.setReached(isReached)),
        signal: stop.signal,
        onInvoice(quote) {
          isAtStake = true
          invoice = showInvoice(quote, stop)
        },
      })
      stop.abort()
      isAtStake = true
      showBought(bought)
    } catch (error) {
      if (stop.signal.aborted) return
      stop.abort()
      showFailure(error, order)
    }
  }

  function showInvoice(quote: PaymentQuote, stop: AbortController): InvoiceView {
    const invoice = createInvoiceView(quote, { giveUp: () => giveUp(stop), keepOpen, onProof })
    everySecond(stop.signal, invoice.tick)
    fill(place, invoice.element)
    byId('step').focus()
    return invoice
  }

  async function giveUp(stop: AbortController): Promise<void> {
    const isWanted = await confirmed('Choose another plan?', {
      body: 'If you have paid this invoice already, stay: the page shows the capability within seconds. Otherwise nothing is lost.',
      action: 'Choose another',
      keep: 'Stay here',
    })
    if (!isWanted || stop.signal.aborted) return
    stop.abort()
    leave()
  }

  function leave(): void {
    isAtStake = false
    onEnded()
    onGivenUp()
  }

  function showFailure(error: unknown, order: Order): void {
    if (!(error instanceof MayflyError)) reportError(error)
    const isOver = error instanceof MayflyError && isRefusal(error)
    if (isOver) {
      isAtStake = false
      onEnded()
    }
    const again = button('Ask again for the same order', () => pay(order), { kind: 'primary' })
    fill(
      place,
      el(
        'div',
        { class: 'card stack narrow' },
        el('h2', { tabindex: '-1', id: 'step' }, isOver ? 'Not bought' : 'Not finished'),
        notice('bad', el('p', {}, sentence(error))),
        el('div', { class: 'row' }, !isOver && again, button('Choose a plan', leave)),
      ),
    )
    byId('step').focus()
  }

  function showBought(bought: Bought): void {
    const state = el('p', { class: 'small quiet', role: 'status' }, 'Not saved yet.')
    const onSaved = (how: string): void => {
      isAtStake = false
      onEnded()
      state.textContent = how
    }
    fill(
      place,
      el(
        'div',
        { class: 'card stack narrow' },
        el('p', { class: 'state', 'data-state': 'paid' }, 'Paid'),
        ...present(bought, { onSaved, state }),
      ),
    )
    byId('step').focus()
  }

  return { pay }
}

/** After these errors the order may still be paid or delivered, so its key must be kept. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

function isRefusal({ status, phrase }: MayflyError): boolean {
  return status < 500 && status !== 429 && !UNDECIDED.includes(phrase)
}
