/** The dialog that extends an open inbox or monitor: what it adds, its invoice, and the new end. */
import { useSignal } from '@preact/signals'
import { extensionOf, extensionOrder } from '../../client/extension.ts'
import type { AnyCapability, Catalog } from '../../client/index.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { sats, sentence, when } from '../lib/format.ts'
import { noteEnd } from '../lib/keys.ts'
import { lifetimeMs, offersOf, type Terms, THINGS } from '../lib/terms.ts'
import { begin, end, type Unfinished, unfinished } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { openDialog, toast } from '../ui/overlay.tsx'
import { Failure, Notice, Working } from '../ui/show.tsx'
import { KeptHere } from './checkout.tsx'
import { isRefusal, useOrder } from './order.ts'
import { Invoice } from './pay.tsx'
import { OnSale, Price } from './plans.tsx'

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
  const purchase = useSignal<Unfinished | null>(null)

  function start(terms: Terms): void {
    const begun = unfinished.value.find((each) => each.extends === publicId)
    purchase.value = begun ?? begin({ ...terms, extends: publicId })
  }

  function offered(catalog: Catalog) {
    const offer = offersOf(catalog, product).find(({ plan }) => plan.planId === status.planId)
    if (!offer?.plan.available || !catalog.checkoutEnabled) {
      return (
        <p>Its plan is not on sale now. Your {THINGS[product].noun} keeps working until it ends.</p>
      )
    }
    const { terms } = offer
    return (
      <>
        <p>
          Adds {terms.lifetime} and {terms.limits[0]}. {newEnd(status.expiresAt, terms)}
        </p>
        <p class="small quiet">Address, keys and data stay the same.</p>
        <div class="row">
          <Button weight="primary" onClick={() => start(terms)}>
            Extend for {sats(terms.priceSats)}
          </Button>
        </div>
      </>
    )
  }

  return (
    <>
      {purchase.value ? (
        <Paying
          purchase={purchase.value}
          close={close}
          onLeave={() => {
            purchase.value = null
          }}
          {...extending}
        />
      ) : (
        <OnSale waiting={<Working>Asking for the price…</Working>}>{offered}</OnSale>
      )}
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
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
}: Extending & { purchase: Unfinished; close: () => void; onLeave: () => void }) {
  const order = extensionOrder(capability, status.planId)
  const { phase, reach, again, onProof } = useOrder(
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
    if (!isRefusal(shown.error)) return <Failure error={shown.error} onAgain={again} />
    return (
      <Notice kind="bad" action={<Button onClick={onLeave}>Back to the price</Button>}>
        {sentence(shown.error)}
      </Notice>
    )
  }
  if (shown.at !== 'invoice') return <Working>Asking for an invoice…</Working>
  return (
    <>
      <h3>
        Pay <Price amount={shown.quote.amountSats} />
      </h3>
      <Invoice quote={shown.quote} reach={reach.value} onProof={onProof} />
      <KeptHere purchase={purchase} />
    </>
  )
}

function newEnd(expiresAt: string, { lifetime }: Terms): string {
  const added = lifetimeMs(lifetime)
  if (added === null) return `It ends ${when(expiresAt)} now.`
  return `New end: ${when(new Date(Date.parse(expiresAt) + added).toISOString())}.`
}
