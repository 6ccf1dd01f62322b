/** The dialog that extends an open inbox or monitor: what it adds, its invoice, and the new end. */
import { MayflyError } from '../../client/errors.ts'
import {
  type Extendable,
  type Extension,
  extensionOf,
  extensionOrder,
} from '../../client/extension.ts'
import type { AnyCapability } from '../../client/index.ts'
import { createPayments } from '../../client/payments.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { button, notice, showDialog, toast, working } from '../components.ts'
import { el, fill } from '../dom.ts'
import { moment, sats, sentence } from '../format.ts'
import { catalog, clock, service } from '../service.ts'
import { isRefusal } from './failure.ts'
import { keep, nameOfKept } from './keeping.ts'
import { meansOfPayment } from './means.ts'
import { offersOf, type Terms } from './terms.ts'

type Held = Extract<AnyCapability, { ownerToken: string }>

export type Extending = {
  capability: Held
  planId: PlanId
  /** The capability has its new end. */
  onExtended: () => unknown
  /** It had ended before the payment, and this was sold in its place. */
  onReplaced: (capability: AnyCapability) => void
}

/** The order of this tab, so that a reload or a closed dialog goes on with the same invoice. */
const keyName = ({ publicId }: Extendable): string => `mayfly.extend.${publicId}`

export function showExtension({ capability, planId, onExtended, onReplaced }: Extending): void {
  const closing = new AbortController()
  const place = el('div', { class: 'stack' }, working('Asking for the price', 'text'))
  const close = showDialog(
    `Extend the ${capability.product === 'catch' ? 'inbox' : 'monitor'}`,
    [
      place,
      el(
        'div',
        { class: 'row' },
        button('Close', () => close()),
      ),
    ],
    () => closing.abort(),
  )
  void offer()

  async function offer(): Promise<void> {
    try {
      const onSale = await catalog()
      const found = offersOf(onSale, capability.product).find((each) => each.plan.planId === planId)
      if (closing.signal.aborted) return
      if (!found?.plan.available || !onSale.checkoutEnabled) {
        fill(place, el('p', {}, 'Its plan cannot be bought now. What is sold keeps working.'))
        return
      }
      const { terms } = found
      fill(
        place,
        el(
          'p',
          {},
          `Adds ${terms.lifetime} and the limits of its plan once more. Address, tokens and all that it keeps stay as they are.`,
        ),
        el('p', { class: 'small quiet' }, terms.limits),
        el(
          'div',
          { class: 'row' },
          button(`Extend for ${sats(terms.priceSats)}`, () => buy(terms), { kind: 'primary' }),
        ),
      )
    } catch (error) {
      fail(error)
    }
  }

  async function buy(terms: Terms): Promise<void> {
    const name = keyName(capability)
    const idempotencyKey = sessionStorage.getItem(name) ?? crypto.randomUUID()
    sessionStorage.setItem(name, idempotencyKey)
    const { signal } = closing
    let preimage: string | undefined
    fill(place, working('Asking for an invoice'))
    try {
      const payments = createPayments(service, { maxSats: terms.priceSats, now: clock.now })
      const order = extensionOrder(capability, planId)
      const terminal = { planId, idempotencyKey, signal }
      const bought = await payments
        .buy(order, {
          ...terminal,
          onInvoice: (quote) =>
            fill(
              place,
              el('h3', {}, `Pay ${sats(quote.amountSats)}`),
              meansOfPayment(quote, (proof) => {
                preimage = proof
              }),
              el(
                'p',
                { class: 'state', role: 'status', 'data-state': 'waiting' },
                'Waiting for payment…',
              ),
              el(
                'p',
                { class: 'small quiet' },
                'What you pay counts even if you close this. Open it again to see the new end.',
              ),
            ),
        })
        .catch((error) => {
          // What is sold in place of an ended capability takes proof, which a wallet of this page gives.
          const isProvable =
            error instanceof MayflyError && error.phrase === 'proof of payment required'
          if (!isProvable || preimage === undefined) throw error
          return payments.buy(order, { ...terminal, preimage, onInvoice: () => {} })
        })
      sessionStorage.removeItem(name)
      close()
      show(extensionOf(bought))
    } catch (error) {
      if (signal.aborted) return
      const isProof = error instanceof MayflyError && error.phrase === 'proof of payment required'
      if (isRefusal(error) && !isProof) sessionStorage.removeItem(name)
      fail(error)
    }
  }

  function show(done: Extension): void {
    if ('replacement' in done) {
      toast('It had ended before it was paid. This new one was sold in its place.')
      onReplaced(done.replacement)
      return
    }
    const { expiresAt } = done
    const { publicId } = capability
    if (nameOfKept(publicId) !== null) keep({ capability: { ...capability, expiresAt }, planId })
    toast(`Extended. It ends ${moment(expiresAt)}.`)
    void onExtended()
  }

  function fail(error: unknown): void {
    fill(
      place,
      notice('bad', el('p', {}, sentence(error))),
      el('div', { class: 'row' }, button('Try again', offer, { kind: 'small' })),
    )
  }
}
