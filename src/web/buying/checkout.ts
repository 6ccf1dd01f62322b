/** Paying, from the order to what it bought. */
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
  /** Asks for an order, the same one each time, and resolves to what it bought. */
  buy(order: Order, steps: Steps): Promise<Bought>
  /** What is shown of it, with `state`, which says what `onSaved` was told last. */
  present(bought: Bought, saving: Saving): Child[]
  /** Said while the order is on its way to the service. */
  asking: string
  /** Said below the invoice: what a reload and a closed tab would lose. */
  keepOpen: string
  /** Told of the proof when a wallet of this page has paid, to keep it where the order's key is. */
  onProof(preimage: string): void
  /** The purchase is over: what it bought is safe, or there is nothing to save. */
  onEnded(): void
  /** The person wants to choose again. */
  onGivenUp(): void
}

export type Saving = {
  /** Told how the person has made it safe. */
  onSaved: (how: string) => void
  /** Says so, beside what makes it safe. */
  state: HTMLElement
}

/** What a purchase of the SDK needs besides its terms. */
export type Steps = {
  /** The service, watched while it is asked whether the invoice is paid. */
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

/** After these the order may still be good, and its key finds it: nothing is decided. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

function isRefusal({ status, phrase }: MayflyError): boolean {
  return status < 500 && status !== 429 && !UNDECIDED.includes(phrase)
}
