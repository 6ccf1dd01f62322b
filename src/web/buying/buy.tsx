/**
 * The page for buying: a thing, a plan, its invoice. After the # of its address may stand a product, or a product and
 * a plan: `/buy#catch/spark` asks for that invoice at once.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Catalog, CatchCapability, PulseCapability } from '../../client/index.ts'
import { createPayments, planOrder } from '../../client/payments.ts'
import { isPlanId, type PlanId } from '../../lib/product-names.ts'
import { sentence } from '../lib/format.ts'
import { catalog, clock } from '../lib/service.ts'
import { CLOSED, offersOf, type Terms, THINGS, termsWithPrice } from '../lib/terms.ts'
import {
  adopt,
  begin,
  isOfThisTab,
  latest,
  type Unfinished,
  unfinished,
} from '../lib/unfinished.ts'
import { mount } from '../ui/page.tsx'
import { Button, Choice, Notice, showTitle } from '../ui/ui.tsx'
import { Bought } from './bought.tsx'
import { Checkout, PlanCard, type Steps, StorageNotice } from './checkout.tsx'

type Product = 'catch' | 'pulse'
/** What the address asks for. */
type Wanted = { product?: Product; planId?: PlanId }

const ABOUT: Record<Product, string> = {
  catch: 'An address that stores every request it gets, exact to the byte.',
  pulse: 'A monitor that your job pings. If the pings stop, you are alerted.',
}
const NAMES = { catch: 'Inbox', pulse: 'Monitor' } as const

function Page() {
  const current = useSignal<Unfinished | null>(null)
  const product = useSignal<Product>('catch')
  const onSale = useSignal<Catalog | null>(null)
  const failure = useSignal<unknown>(null)

  useEffect(() => {
    const routed = (): void => void route()
    addEventListener('hashchange', routed)
    routed()
    return () => removeEventListener('hashchange', routed)
  }, [])

  /** Goes on with the purchase of this tab that the address asks for, or begins it. */
  async function route(): Promise<void> {
    const wanted = wantedBy(location.hash)
    const same = unfinished.value.find(
      (each) =>
        isBoughtHere(each) &&
        isOfThisTab(each) &&
        (wanted.product ?? each.product) === each.product &&
        (wanted.planId ?? each.planId) === each.planId,
    )
    if (same) {
      show(same)
      return
    }
    product.value = wanted.product ?? 'catch'
    current.value = null
    showTitle(`Buy ${THINGS[product.value].an}`)
    await load()
    const offer =
      onSale.value &&
      offersOf(onSale.value, product.value).find(({ plan }) => plan.planId === wanted.planId)
    if (offer?.plan.available && onSale.value?.checkoutEnabled) show(begin(offer.terms))
  }

  async function load(): Promise<void> {
    failure.value = null
    try {
      onSale.value = await catalog()
    } catch (error) {
      failure.value = error
    }
  }

  function show(purchase: Unfinished): void {
    adopt(purchase)
    product.value = purchase.product === 'pulse' ? 'pulse' : 'catch'
    showInAddress(product.value)
    current.value = purchase
  }

  function choose(chosen: Product): void {
    product.value = chosen
    showInAddress(chosen)
    showTitle(`Buy ${THINGS[chosen].an}`)
  }

  function leave(): void {
    current.value = null
    void load()
  }

  const purchase = current.value
  if (purchase) {
    return (
      <Checkout
        key={purchase.idempotencyKey}
        purchase={purchase}
        buy={(steps) => buy(latest(purchase), steps)}
        asking="Asking for an invoice"
        onLeave={leave}
        onRenew={() => show(begin(termsIn(purchase)))}
      >
        {(bought) => <Bought capability={bought} purchase={purchase} />}
      </Checkout>
    )
  }
  return (
    <div class="stack">
      <h1>Buy {THINGS[product.value].an}</h1>
      <StorageNotice />
      <Others onOpen={show} />
      <Choice
        label="What to buy"
        names={['Inbox', 'Monitor']}
        chosen={NAMES[product.value]}
        onChoose={(name) => choose(name === 'Monitor' ? 'pulse' : 'catch')}
      />
      <p class="quiet">{ABOUT[product.value]}</p>
      {failure.value !== null && (
        <Notice kind="bad" action={<Button onClick={load}>Try again</Button>}>
          {sentence(failure.value)}
        </Notice>
      )}
      <Plans
        onSale={onSale.value}
        product={product.value}
        onChoose={(terms) => show(begin(terms))}
      />
    </div>
  )
}

function Plans({
  onSale,
  product,
  onChoose,
}: {
  onSale: Catalog | null
  product: Product
  onChoose: (terms: Terms) => void
}) {
  if (onSale === null) {
    return (
      <div class="plans" aria-hidden="true">
        {[1, 2, 3].map((each) => (
          <div key={each} class="skeleton plan-skeleton" />
        ))}
      </div>
    )
  }
  return (
    <>
      {!onSale.checkoutEnabled && <Notice kind="warn">{CLOSED}</Notice>}
      <div class="plans">
        {offersOf(onSale, product).map(({ plan, terms }) => (
          <PlanCard
            key={plan.planId}
            purchase={terms}
            bestFor={plan.bestFor}
            isAvailable={plan.available}
            refusal={onSale.checkoutEnabled ? null : 'The checkout is closed.'}
            onChoose={() => onChoose(terms)}
          />
        ))}
      </div>
    </>
  )
}

/** The other purchases of this browser that are not finished. */
function Others({ onOpen }: { onOpen: (purchase: Unfinished) => void }) {
  return (
    <>
      {unfinished.value.filter(isBoughtHere).map((each) => (
        <Notice
          key={each.idempotencyKey}
          kind="warn"
          action={<Button onClick={() => onOpen(each)}>Continue</Button>}
        >
          {each.isPaid ? 'You have not saved what you paid for' : 'You have an unfinished purchase'}
          : {termsWithPrice(each)}.
        </Notice>
      ))}
    </>
  )
}

const isBoughtHere = ({ product, extends: extended }: Unfinished): boolean =>
  product !== 'whisper' && extended === undefined

const termsIn = ({ product, planId, priceSats, lifetime, limits }: Unfinished): Terms => ({
  ...{ product, planId, priceSats, lifetime, limits },
})

async function buy(
  { product, planId, priceSats, idempotencyKey, preimage, quote }: Unfinished,
  { http, ...steps }: Steps,
): Promise<CatchCapability | PulseCapability> {
  // The person pays at most the price that the page showed.
  const payments = createPayments(http, { maxSats: priceSats, now: clock.now })
  const claim = { idempotencyKey, ...(preimage === undefined ? {} : { preimage }) }
  if (quote !== null) {
    steps.onInvoice(quote)
    const { signal } = steps
    return (await payments.collect(quote, { ...claim, signal })) as
      | CatchCapability
      | PulseCapability
  }
  const order = planOrder(product as Product, planId)
  const bought = await payments.buy(order, { planId, ...claim, ...steps })
  return bought as CatchCapability | PulseCapability
}

/** Reads `#catch` or `#catch/spark`. */
function wantedBy(hash: string): Wanted {
  const [product, planId] = hash.slice(1).split('/')
  if (product !== 'catch' && product !== 'pulse') return {}
  return isPlanId(planId) ? { product, planId } : { product }
}

/** Leaves the product in the address, without a plan: a reload later must not ask for another invoice. */
function showInAddress(product: Product): void {
  history.replaceState(null, '', `#${product}`)
}

mount(<Page />)
