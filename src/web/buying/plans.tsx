/** The plans of a product as cards. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Catalog } from '../../client/index.ts'
import type { Product } from '../../lib/product-names.ts'
import { sats, worth } from '../lib/format.ts'
import { catalog } from '../lib/service.ts'
import { BLOCKED, isStorageBlocked } from '../lib/storage.ts'
import { type Offer, offersOf, planTitle, whyClosed } from '../lib/terms.ts'
import { Loaded, Notice } from '../ui/show.tsx'

/** What is on sale, once it is known. */
export const onSale = signal<Catalog | null>(null)
export async function loadPlans(): Promise<Catalog> {
  const told = await catalog()
  onSale.value = told
  return told
}

/** What is made of the catalogue, or why it is not known. */
export function OnSale({
  waiting,
  children,
}: {
  waiting: ComponentChildren
  children: (catalog: Catalog) => ComponentChildren
}) {
  const known = onSale.value
  return (
    <Loaded load={loadPlans} waiting={known === null ? waiting : children(known)}>
      {children}
    </Loaded>
  )
}

export function Plans<Name extends Product>({
  product,
  refusalOf = () => null,
  limitsOf = ({ terms }) => terms.limits,
  onChoose,
}: {
  product: Name
  /** Why a plan does not fit. */
  refusalOf?: (plan: Offer<Name>['plan']) => string | null
  limitsOf?: (offer: Offer<Name>) => readonly string[]
  onChoose: (terms: Offer<Name>['terms']) => unknown
}) {
  const waiting = (
    <div class="pairs" aria-hidden="true">
      {[1, 2, 3].map((each) => (
        <div key={each} class="skeleton plan-skeleton" />
      ))}
    </div>
  )
  return (
    <OnSale waiting={waiting}>
      {(catalog) => (
        <>
          {isStorageBlocked() && <Notice kind="warn">{BLOCKED}</Notice>}
          {whyClosed(catalog) && <Notice kind="warn">{whyClosed(catalog)}</Notice>}
          <div class="pairs">
            {offersOf(catalog, product).map((offer) => (
              <PlanCard
                key={offer.plan.planId}
                offer={offer}
                limits={limitsOf(offer)}
                refusal={
                  catalog.checkoutEnabled ? refusalOf(offer.plan) : 'The checkout is closed.'
                }
                onChoose={() => onChoose(offer.terms)}
              />
            ))}
          </div>
        </>
      )}
    </OnSale>
  )
}

/** A plan with its price and limits, or why it cannot be bought. */
export function PlanCard({
  offer: { plan, terms },
  limits,
  refusal,
  onChoose,
}: {
  offer: Offer
  limits: readonly string[]
  refusal: string | null
  onChoose: () => unknown
}) {
  const why = plan.available ? refusal : 'Not on sale.'
  return (
    <button
      type="button"
      class="card plan"
      // The address may name the one that a price on another page led to.
      aria-current={location.hash === `#${terms.planId}` ? 'true' : undefined}
      disabled={why !== null}
      onClick={onChoose}
    >
      <span class="plan-name">
        {planTitle(terms.planId)} · {terms.lifetime}
      </span>
      <span class="plan-price">
        <Price amount={terms.priceSats} />
      </span>
      <span class="small quiet">{plan.bestFor}</span>
      {why === null ? (
        <>
          {limits.map((limit) => (
            <span class="plan-limit" key={limit}>
              {limit}
            </span>
          ))}
          <span class="btn plan-choose">Choose</span>
        </>
      ) : (
        <span class="plan-limit why">{why}</span>
      )}
    </button>
  )
}

/** A price in satoshis, and about what that is in money if the operator has set where rates come from. */
export function Price({ amount }: { amount: number }) {
  const money = worth(amount)
  return (
    <>
      {sats(amount)}
      {money !== '' && <span class="money"> {money}</span>}
    </>
  )
}
