/** Paying, from the order to what it bought. */
import { MayflyError } from '../../client/errors.ts'
import type { Http } from '../../client/http.ts'
import type { PaymentQuote } from '../../client/index.ts'
import { button, confirmed, copyButton, notice, toast, working } from '../components.ts'
import { byId, type Child, el, fill } from '../dom.ts'
import { remaining, sats, sentence } from '../format.ts'
import { clock, watchfulService } from '../service.ts'
import { guardTab } from './pending.ts'
import { qrCode } from './qr.ts'

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

const isSimulator = document.documentElement.dataset.mode === 'simulator'

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
    let showReach = (_isReached: boolean): void => {}
    const giveUp = async (): Promise<void> => {
      const isWanted = await confirmed('Choose another plan?', {
        body: 'If you have paid this invoice already, stay: the page shows the capability within seconds. Otherwise nothing is lost.',
        action: 'Choose another',
      })
      if (!isWanted || stop.signal.aborted) return
      stop.abort()
      leave()
    }
    fill(place, working(asking))
    try {
      const bought = await buy(order, {
        http: watchfulService((isReached) => showReach(isReached)),
        signal: stop.signal,
        onInvoice(quote) {
          isAtStake = true
          showReach = showInvoice(place, quote, {
            ...{ signal: stop.signal, giveUp, keepOpen, onProof },
          })
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

/** What leaves the order as it was, for its key to find: a lost connection, or a mistake over there. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

function isRefusal({ status, phrase }: MayflyError): boolean {
  return status < 500 && status !== 429 && !UNDECIDED.includes(phrase)
}

type InvoiceOptions = {
  signal: AbortSignal
  giveUp: () => unknown
  keepOpen: string
  onProof: (preimage: string) => void
}

/** Shows it, and hands back what is to be told whether the service can be reached. */
function showInvoice(
  place: HTMLElement,
  quote: PaymentQuote,
  { signal, giveUp, keepOpen, onProof }: InvoiceOptions,
): (isReached: boolean) => void {
  const { bolt11, amountSats, expiresAt } = quote
  const left = el('span', { class: 'number' })
  const state = el('p', { class: 'state', role: 'status', 'aria-live': 'polite' })
  const simulated = button('Pay (simulator)', () => paySimulated(bolt11, simulated, onProof), {
    kind: 'primary wide',
  })
  const wallet = el(
    'a',
    { class: isSimulator ? 'button' : 'button primary', href: `lightning:${bolt11}` },
    'Open in a wallet',
  )
  const means = el(
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
  let isReached = true
  const show = (): void => {
    const milliseconds = Date.parse(expiresAt) - clock.now()
    const isOver = milliseconds <= 0
    left.textContent = isOver ? 'over' : remaining(milliseconds)
    // A wallet would refuse it.
    means.inert = isOver
    const said = !isReached
      ? 'The service is away. Asking again; what is paid is kept.'
      : isOver
        ? 'The time is over. Checking whether it was paid…'
        : 'Waiting for the payment…'
    state.dataset.state = isReached ? 'waiting' : 'lost'
    // A reader hears of a change alone.
    if (state.textContent !== said) state.textContent = said
  }
  show()
  const timer = setInterval(show, 1_000)
  signal.addEventListener('abort', () => clearInterval(timer))
  fill(
    place,
    el(
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
    ),
  )
  byId('step').focus()
  return (now) => {
    isReached = now
    show()
  }
}

/** The simulator's payer. What it does shows in the state, as with any wallet. */
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
