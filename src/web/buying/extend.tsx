/** The dialog that extends an open inbox or monitor: what it adds, its invoice, and the new end. */
import { useSignal } from '@preact/signals'
import { extensionOf, extensionOrder } from '../../client/extension.ts'
import type { AnyCapability, Catalog } from '../../client/index.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { sats, sentence, when } from '../lib/format.ts'
import { noteEnd } from '../lib/keys.ts'
import { lifetimeMs, type Offer, offersOf, type Terms, THINGS, whyClosed } from '../lib/terms.ts'
import { type Begun, begin, end, unfinished } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { openDialog, toast } from '../ui/overlay.tsx'
import { Failure, Notice, Working } from '../ui/show.tsx'
import { Asking, KeptHere, Paid } from './checkout.tsx'
import { isExpired, isRefusal, useOrder } from './order.ts'
import { Invoice } from './pay.tsx'
import { OnSale, onSale, Price } from './plans.tsx'

export type Extending = {
  capability: Extract<AnyCapability, { ownerToken: string }>
  /** As the service said last. */
  status: { planId: PlanId; expiresAt: string }
  onExtended: () => unknown
  /** It had ended before the payment, and this was sold in its place. */
  onReplaced: (capability: AnyCapability) => void
}

export function showExtension(extending: Extending): void {
  const { noun } = THINGS[extending.capability.product]
  openDialog(`Extend the ${noun}`, (close) => <Extend {...extending} close={close} />)
}

function Extend({ close, ...extending }: Extending & { close: () => void }) {
  const { capability, status } = extending
  const { publicId, product } = capability
  const purchase = useSignal<Begun | null>(null)

  function start(terms: Terms): void {
    const begun = unfinished.value.find((each) => each.extends === publicId)
    purchase.value = begun ?? begin({ ...terms, extends: publicId })
  }

  const begun = purchase.value
  const offers = onSale.value?.checkoutEnabled ? offersOf(onSale.value, product) : []
  const offer = offers.find(({ plan }) => plan.planId === status.planId && plan.available)
  return (
    <>
      {begun ? (
        <Paying
          purchase={begun}
          close={close}
          onLeave={() => {
            purchase.value = null
          }}
          {...extending}
        />
      ) : (
        <OnSale waiting={<Working>Asking for the price…</Working>}>
          {(catalog) => <Offered catalog={catalog} offer={offer} extending={extending} />}
        </OnSale>
      )}
      <div class="row">
        {!begun && offer && (
          <Button weight="primary" onClick={() => start(offer.terms)}>
            Extend for {sats(offer.terms.priceSats)}
          </Button>
        )}
        <Button onClick={close}>Close</Button>
      </div>
    </>
  )
}

/** What it adds, if its plan is on sale. */
function Offered({
  catalog,
  offer,
  extending,
}: {
  catalog: Catalog
  offer: Offer | undefined
  extending: Extending
}) {
  const { capability, status } = extending
  if (!offer) {
    const { noun } = THINGS[capability.product]
    const why = `Its plan is not on sale now. Your ${noun} keeps working until it ends.`
    return <p>{whyClosed(catalog) ?? why}</p>
  }
  const { lifetime, limits } = offer.terms
  return (
    <>
      <p>
        Adds {lifetime} and {limits[0]}. {newEnd(status.expiresAt, offer.terms)}
      </p>
      <p class="small quiet">Address, keys and data stay the same.</p>
    </>
  )
}

function Paying({
  purchase,
  close,
  onLeave,
  capability,
  status,
  onExtended,
  onReplaced,
}: Extending & { purchase: Begun; close: () => void; onLeave: () => void }) {
  const order = extensionOrder(capability, status.planId)
  const { phase, reach, run } = useOrder(
    purchase,
    (payments, terms) => payments.buy(order, terms),
    // What was paid counts also when the dialog is closed.
    { isKept: true, onBought },
  )

  function onBought(bought: unknown): void {
    end(purchase)
    close()
    const done = extensionOf(bought)
    if ('replacement' in done) {
      toast('It had ended before the payment. You have a new one in its place.')
      onReplaced(done.replacement)
      return
    }
    noteEnd(capability.publicId, done.expiresAt)
    toast(`Extended. It ends ${when(done.expiresAt)}.`)
    onExtended()
  }

  const shown = phase.value
  if (shown.at === 'failed') {
    // To ask for a refused order again only brings the same refusal.
    if (!isRefusal(shown.error)) return <Failure error={shown.error} onAgain={() => run()} />
    return (
      <Notice
        kind={isExpired(shown.error) ? undefined : 'bad'}
        action={<Button onClick={onLeave}>Back to the price</Button>}
      >
        {sentence(shown.error)}
      </Notice>
    )
  }
  if (shown.at === 'asking') return <Asking reach={reach.value}>Asking for an invoice</Asking>
  if (shown.at !== 'invoice') return <Paid reach={reach.value} />
  return (
    <>
      <h3>
        Pay <Price amount={shown.quote.amountSats} />
      </h3>
      <Invoice quote={shown.quote} reach={reach.value} onProof={run} />
      <KeptHere purchase={purchase} />
    </>
  )
}

function newEnd(expiresAt: string, { lifetime }: Terms): string {
  const added = lifetimeMs(lifetime)
  if (added === null) return `It ends ${when(expiresAt)} now.`
  return `New end: ${when(new Date(Date.parse(expiresAt) + added).toISOString())}.`
}
