/** The checkout, from the order to the capability. */
import { MayflyError } from '../../client/errors.ts'
import type { Http } from '../../client/http.ts'
import type { PaymentQuote } from '../../client/index.ts'
import { confirmed, working } from '../components.ts'
import { byId, type Child, el, fill } from '../dom.ts'
import { sats } from '../format.ts'
import { everySecond, watchfulService } from '../service.ts'
import { failureTitle, failureView, isRefusal } from './failure.ts'
import { guardTab } from './guard.ts'
import { createInvoiceView, type InvoiceView } from './invoice-view.ts'
import { NOUNS, type Terms } from './terms.ts'
import { showTitle } from './title.ts'

export type Checkout<Order> = {
  /** Shows the invoice of an order and stays until it is paid, given up, refused or stopped. */
  pay(order: Order): Promise<void>
  /** Turns to something else. The order stays as it is. */
  stop(): void
}

export type CheckoutOptions<Order, Bought> = {
  /** Where the steps are shown. */
  place: HTMLElement
  /** Requests the order and resolves to the capability. A repeat requests the same order. */
  buy(order: Order, steps: Steps): Promise<Bought>
  /** Shows the capability, and in it `saving.state`. */
  present(bought: Bought, order: Order, saving: Saving): Child[]
  /** The text while the order is requested. */
  asking: string
  /** The text below the invoice: what a reload or a closed tab would lose. */
  keepOpen: string
  /** Called with the proof after a wallet of this page has paid. Stores the proof with the order's key. */
  onProof(order: Order, preimage: string): void
  /** The capability is here, and not saved yet. */
  onPaid(order: Order): void
  /** The purchase is over: its capability is saved, or there is none. */
  onEnded(order: Order): void
  /** The user wants to choose again. */
  onGivenUp(order: Order): void
  /** Orders the same plan anew after the invoice has expired, or null if the page cannot. */
  renewalOf(order: Order): (() => unknown) | null
}

export type Saving = {
  /** Called with the way in which the user saved the capability. From then on, the tab may be closed. */
  onSaved: (how: string) => void
  /** Says something about saving while it is not done. */
  say: (text: string) => void
  /** Whether it was saved. */
  isSaved: () => boolean
  /** Shows what was said last. */
  state: HTMLElement
}

/** What a purchase of the SDK needs besides its terms. */
export type Steps = {
  /** The service. Shows whether it is reachable while the order is polled. */
  http: Http
  signal: AbortSignal
  onInvoice: (quote: PaymentQuote) => void
}

/** Why a purchase was turned away from, though it is not over. */
const STOPPED = 'stopped'

export function createCheckout<Order extends { terms: Terms }, Bought>({
  place,
  buy,
  present,
  asking,
  keepOpen,
  onProof,
  onPaid,
  onEnded,
  onGivenUp,
  renewalOf,
}: CheckoutOptions<Order, Bought>): Checkout<Order> {
  let isAtStake = false
  let current = new AbortController()
  guardTab(() => isAtStake)

  async function pay(order: Order): Promise<void> {
    current.abort(STOPPED)
    const stop = new AbortController()
    current = stop
    let invoice: InvoiceView | null = null
    fill(place, working(asking))
    try {
      const bought = await buy(order, {
        http: watchfulService((isReached) => invoice?.setReached(isReached)),
        signal: stop.signal,
        onInvoice(quote) {
          isAtStake = true
          invoice = showInvoice(order, quote, stop)
        },
      })
      if (stop.signal.reason === STOPPED) return
      stop.abort()
      isAtStake = true
      onPaid(order)
      showBought(bought, order)
    } catch (error) {
      if (stop.signal.aborted) return
      stop.abort()
      showFailure(error, order)
    }
  }

  function showInvoice(order: Order, quote: PaymentQuote, stop: AbortController): InvoiceView {
    const { terms } = order
    const invoice = createInvoiceView(quote, {
      terms,
      giveUp: () => giveUp(order, stop),
      keepOpen,
      onProof: (preimage) => onProof(order, preimage),
    })
    everySecond(stop.signal, invoice.tick)
    showTitle(`Pay ${sats(quote.amountSats)} for ${NOUNS[terms.product].article}`)
    fill(place, invoice.element)
    byId('step').focus()
    return invoice
  }

  async function giveUp(order: Order, stop: AbortController): Promise<void> {
    const isWanted = await confirmed('Choose another plan?', {
      body: 'If you have already paid this invoice, stay: what you bought shows here within seconds. Otherwise nothing is lost.',
      action: 'Choose another',
      keep: 'Stay here',
    })
    if (!isWanted || stop.signal.aborted) return
    stop.abort()
    leave(order)
  }

  function leave(order: Order): void {
    isAtStake = false
    onEnded(order)
    onGivenUp(order)
  }

  function showFailure(error: unknown, order: Order): void {
    if (!(error instanceof MayflyError)) reportError(error)
    if (isRefusal(error)) {
      isAtStake = false
      onEnded(order)
    }
    showTitle(failureTitle(error))
    fill(
      place,
      failureView(error, {
        terms: order.terms,
        onAgain: () => pay(order),
        onRenew: renewalOf(order) ?? undefined,
        onLeave: () => leave(order),
      }),
    )
    byId('step').focus()
  }

  function showBought(bought: Bought, order: Order): void {
    const line = el('p', { role: 'status' }, 'Not saved yet.')
    const state = el('div', { class: 'notice warn' }, line)
    let isSaved = false
    const saving: Saving = {
      state,
      isSaved: () => isSaved,
      say(text) {
        line.textContent = text
      },
      onSaved(how) {
        isSaved = true
        isAtStake = false
        onEnded(order)
        state.className = 'notice'
        line.textContent = how
      },
    }
    showTitle(`Paid: your ${NOUNS[order.terms.product].noun} is ready`)
    fill(
      place,
      el(
        'div',
        { class: 'card stack narrow' },
        el('p', { class: 'state', 'data-state': 'paid' }, 'Paid'),
        ...present(bought, order, saving),
      ),
    )
    byId('step').focus()
  }

  function stop(): void {
    current.abort(STOPPED)
    isAtStake = false
  }

  return { pay, stop }
}
