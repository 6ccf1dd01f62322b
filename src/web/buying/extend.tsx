/** The dialog that extends an open inbox or monitor: what it adds, its invoice, and the new end. */
import { useState } from 'preact/hooks'
import { extensionOf, extensionOrder } from '../../client/extension.ts'
import type { AnyCapability } from '../../client/index.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { openInPlaceOf } from '../keys/opener.tsx'
import { sats, when } from '../lib/format.ts'
import { noteEnd } from '../lib/keys.ts'
import { lifetimeMs, offersOf, type Terms, THINGS, whyClosed } from '../lib/terms.ts'
import { type Begun, begin, end, unfinished } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { openDialog, toast } from '../ui/overlay.tsx'
import { Working } from '../ui/show.tsx'
import { Checkout } from './checkout.tsx'
import { OnSale, onSale } from './plans.tsx'

export type Extending = {
  capability: Extract<AnyCapability, { ownerToken: string }>
  /** As the service said last. */
  status: { planId: PlanId; expiresAt: string }
  onExtended: () => unknown
}

export function showExtension(extending: Extending): void {
  const { noun } = THINGS[extending.capability.product]
  openDialog(`Extend the ${noun}`, (close) => <Extend {...extending} close={close} />)
}

function Extend({ capability, status, onExtended, close }: Extending & { close: () => void }) {
  const { publicId, product } = capability
  const [begun, setBegun] = useState<Begun | null>(null)

  function start(terms: Terms): void {
    const before = unfinished.value.find((each) => each.extends === publicId)
    setBegun(before ?? begin({ ...terms, extends: publicId }))
  }

  function extended(bought: unknown): void {
    if (begun) end(begun)
    close()
    const done = extensionOf(bought)
    if ('replacement' in done) {
      toast('It had ended before the payment. You have a new one in its place.')
      openInPlaceOf(publicId, { capability: done.replacement, planId: status.planId })
      return
    }
    noteEnd(publicId, done.expiresAt)
    toast(`Extended. It ends ${when(done.expiresAt)}.`)
    onExtended()
  }

  const offers = onSale.value?.checkoutEnabled ? offersOf(onSale.value, product) : []
  const offer = offers.find(({ plan }) => plan.planId === status.planId && plan.available)
  return (
    <>
      {begun ? (
        <Checkout
          key={begun.idempotencyKey}
          purchase={begun}
          buy={(payments, asked) => payments.buy(extensionOrder(capability, status.planId), asked)}
          asking="Asking for an invoice"
          onBought={extended}
          onLeave={() => setBegun(null)}
          onRenew={() => start(begun)}
        >
          {() => null}
        </Checkout>
      ) : (
        <OnSale waiting={<Working>Asking for the price…</Working>}>
          {(catalog) =>
            offer ? (
              <>
                <p>
                  Adds {offer.terms.lifetime} and {offer.terms.limits[0]}.{' '}
                  {newEnd(status.expiresAt, offer.terms)}
                </p>
                <p class="small quiet">Address, keys and data stay the same.</p>
              </>
            ) : (
              <p>
                {whyClosed(catalog) ??
                  `Its plan is not on sale now. Your ${THINGS[product].noun} keeps working until it ends.`}
              </p>
            )
          }
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

function newEnd(expiresAt: string, { lifetime }: Terms): string {
  const added = lifetimeMs(lifetime)
  if (added === null) return `It ends ${when(expiresAt)} now.`
  return `New end: ${when(new Date(Date.parse(expiresAt) + added).toISOString())}.`
}
