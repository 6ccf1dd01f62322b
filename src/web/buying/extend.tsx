/** The dialog that extends an open inbox or monitor: what it adds, its invoice, and the new end. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { type Extension, extensionOf, extensionOrder } from '../../client/extension.ts'
import type { AnyCapability, PaymentQuote } from '../../client/index.ts'
import { createPayments } from '../../client/payments.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { sats, sentence, when } from '../lib/format.ts'
import { noteEnd } from '../lib/keys.ts'
import { catalog, clock, type Reach, watchfulService } from '../lib/service.ts'
import { lifetimeMs, offersOf, type Terms, THINGS } from '../lib/terms.ts'
import { begin, end, latest, note, type Unfinished, unfinished } from '../lib/unfinished.ts'
import { openDialog, toast } from '../ui/overlay.ts'
import { Button, Notice, Working } from '../ui/ui.tsx'
import { isRefusal, KeptHere } from './checkout.tsx'
import { Invoice } from './pay.tsx'

type Held = Extract<AnyCapability, { ownerToken: string }>

export type Extending = {
  capability: Held
  planId: PlanId
  /** Its end as the service said last. */
  expiresAt: string
  onExtended: () => unknown
  /** It had ended before the payment, and this was sold in its place. */
  onReplaced: (capability: AnyCapability) => void
}

export function showExtension(extending: Extending): void {
  const { noun } = THINGS[extending.capability.product]
  openDialog(`Extend the ${noun}`, (close) => <Extend {...extending} close={close} />)
}

type Phase =
  | { at: 'loading' | 'asking' | 'closed' }
  | { at: 'offer'; terms: Terms }
  | { at: 'invoice'; quote: PaymentQuote; purchase: Unfinished }
  | { at: 'failed'; why: string }

function Extend({
  capability,
  planId,
  expiresAt,
  onExtended,
  onReplaced,
  close,
}: Extending & { close: () => void }) {
  const phase = useSignal<Phase>({ at: 'loading' })
  const reach = useSignal<Reach>({ isReached: true, pauseSeconds: null })
  const stop = useSignal(new AbortController())
  const { publicId } = capability

  useEffect(() => {
    void offer()
    // What was paid counts also when the dialog is closed: the page goes on polling.
    return () => phase.value.at !== 'invoice' && stop.value.abort()
  }, [])

  async function offer(): Promise<void> {
    try {
      const onSale = await catalog()
      const found = offersOf(onSale, capability.product).find(({ plan }) => plan.planId === planId)
      const isSold = found?.plan.available === true && onSale.checkoutEnabled
      phase.value = isSold ? { at: 'offer', terms: found.terms } : { at: 'closed' }
    } catch (error) {
      phase.value = { at: 'failed', why: sentence(error) }
    }
  }

  async function buy(terms: Terms): Promise<void> {
    phase.value = { at: 'asking' }
    const begun = unfinished.value.find((each) => each.extends === publicId)
    const purchase = begun ?? begin({ ...terms, extends: publicId })
    const { signal } = stop.value
    const http = watchfulService((next) => {
      reach.value = next
    })
    const payments = createPayments(http, { maxSats: purchase.priceSats, now: clock.now })
    const order = extensionOrder(capability, planId)
    const { idempotencyKey, quote } = purchase
    const onInvoice = (shown: PaymentQuote): void => {
      note(purchase, { quote: shown })
      phase.value = { at: 'invoice', quote: shown, purchase }
    }
    const proof = (): { preimage: string } | null => {
      const { preimage } = latest(purchase)
      return preimage === undefined ? null : { preimage }
    }
    try {
      if (quote !== null) onInvoice(quote)
      const waiting =
        quote === null
          ? payments.buy(order, { planId, idempotencyKey, signal, onInvoice })
          : payments.collect(quote, { idempotencyKey, ...proof(), signal })
      const bought = await waiting.catch((error: unknown) => {
        // What is sold in place of an ended capability takes proof, which a wallet of this page gives.
        const proven = proof()
        if (!needsProof(error) || proven === null) throw error
        return payments.buy(order, {
          planId,
          idempotencyKey,
          signal,
          ...proven,
          onInvoice: () => {},
        })
      })
      end(purchase)
      show(extensionOf(bought))
      close()
    } catch (error) {
      if (signal.aborted) return
      if (isRefusal(error) && !needsProof(error)) end(purchase)
      phase.value = { at: 'failed', why: sentence(error) }
    }
  }

  function show(done: Extension): void {
    if ('replacement' in done) {
      toast('It had ended before it was paid. This new one was sold in its place.')
      onReplaced(done.replacement)
      return
    }
    noteEnd(publicId, done.expiresAt)
    toast(`Extended. It ends ${when(done.expiresAt)}.`)
    onExtended()
  }

  const shown = phase.value
  return (
    <>
      {shown.at === 'loading' && <Working>Asking for the price…</Working>}
      {shown.at === 'asking' && <Working>Asking for an invoice…</Working>}
      {shown.at === 'closed' && <p>Its plan cannot be bought now. What is sold keeps working.</p>}
      {shown.at === 'failed' && (
        <Notice kind="bad" action={<Button onClick={offer}>Try again</Button>}>
          {shown.why}
        </Notice>
      )}
      {shown.at === 'offer' && (
        <>
          <p>
            Adds {shown.terms.lifetime} and {shown.terms.limits[0]}.{' '}
            {newEnd(expiresAt, shown.terms)}
          </p>
          <p class="small quiet">Address, keys and stored data stay as they are.</p>
          <div class="row">
            <Button weight="primary" onClick={() => buy(shown.terms)}>
              Extend for {sats(shown.terms.priceSats)}
            </Button>
          </div>
        </>
      )}
      {shown.at === 'invoice' && (
        <>
          <h3>Pay {sats(shown.quote.amountSats)}</h3>
          <Invoice
            quote={shown.quote}
            reach={reach.value}
            onProof={(preimage) => note(shown.purchase, { preimage })}
          />
          <KeptHere purchase={shown.purchase} />
        </>
      )}
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
    </>
  )
}

function newEnd(expiresAt: string, { lifetime }: Terms): string {
  const added = lifetimeMs(lifetime)
  if (added === null) return `It ends ${when(expiresAt)} now.`
  return `New end: ${when(new Date(Date.parse(expiresAt) + added).toISOString())}.`
}

const needsProof = (error: unknown): boolean =>
  error instanceof MayflyError && error.phrase === 'proof of payment required'
