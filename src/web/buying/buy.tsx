/**
 * The page for buying: a thing, a plan, its invoice. After the # of its address may stand a product, or a product and
 * a plan: `/buy#catch/spark` asks for that invoice at once.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { CatchCapability, PulseCapability } from '../../client/index.ts'
import { planOrder } from '../../client/order-requests.ts'
import { isPlanId, type PlanId } from '../../lib/product-names.ts'
import { offersOf, THINGS } from '../lib/terms.ts'
import { type Begun, begin, ofThisTab, type Unfinished, unfinished } from '../lib/unfinished.ts'
import { Choice } from '../ui/button.tsx'
import { mount } from '../ui/overlay.tsx'
import { showTitle } from '../ui/show.tsx'
import { Bought } from './bought.tsx'
import { Checkout } from './checkout.tsx'
import { Others } from './others.tsx'
import { loadPlans, Plans } from './plans.tsx'

type Product = 'catch' | 'pulse'
type Capability = CatchCapability | PulseCapability
/** What the address asks for. */
type Wanted = { product?: Product; planId?: PlanId }

type BoughtHere = Begun & { product: Product }
const isBoughtHere = (each: Unfinished): each is Unfinished & BoughtHere =>
  each.product !== 'whisper' && each.extends === undefined

function Page() {
  const current = useSignal<BoughtHere | null>(null)
  const product = useSignal<Product>('catch')

  useEffect(() => {
    const routed = (): void => void route()
    addEventListener('hashchange', routed)
    routed()
    return () => removeEventListener('hashchange', routed)
  }, [])

  /** Goes on with the purchase of this tab that the address asks for, or begins it. */
  async function route(): Promise<void> {
    const wanted = wantedBy(location.hash)
    const isWanted = (each: BoughtHere): boolean =>
      (wanted.product ?? each.product) === each.product &&
      (wanted.planId ?? each.planId) === each.planId
    const mine = ofThisTab().filter(isBoughtHere).find(isWanted)
    if (mine) {
      show(mine)
      return
    }
    choose(wanted.product ?? 'catch', location.hash)
    if (wanted.planId === undefined) return
    // Why it is not known is shown in the place of the plans.
    const told = await loadPlans().catch(() => null)
    if (!told?.checkoutEnabled) return
    const offers = offersOf(told, product.value)
    const offer = offers.find(({ plan }) => plan.planId === wanted.planId)
    if (offer?.plan.available) show(begin(offer.terms))
  }

  function show(purchase: BoughtHere): void {
    choose(purchase.product)
    current.value = purchase
  }

  /** Leaves the product in the address, without a plan: a reload later must not ask for another invoice. */
  function choose(chosen: Product, hash = `#${chosen}`): void {
    current.value = null
    product.value = chosen
    history.replaceState(null, '', hash)
    showTitle(`Buy ${THINGS[chosen].an}`)
  }

  const purchase = current.value
  if (purchase) {
    return (
      <Checkout<Capability>
        key={purchase.idempotencyKey}
        purchase={purchase}
        buy={(payments, asked) => payments.buy(planOrder(purchase.product, purchase.planId), asked)}
        asking="Asking for an invoice"
        onLeave={() => choose(purchase.product)}
        onRenew={() => show(begin(purchase))}
      >
        {(bought) => <Bought capability={bought} purchase={purchase} />}
      </Checkout>
    )
  }
  return (
    <div class="stack">
      <h1>Buy {THINGS[product.value].an}</h1>
      <Others list={unfinished.value.filter(isBoughtHere)} onOpen={show} />
      <Choice
        label="Product"
        names={['Inbox', 'Monitor']}
        chosen={THINGS[product.value].title}
        onChoose={(name) => choose(name === 'Monitor' ? 'pulse' : 'catch')}
      />
      <p class="quiet">{THINGS[product.value].about}</p>
      <Plans key={product.value} product={product.value} onChoose={(terms) => show(begin(terms))} />
    </div>
  )
}

/** Reads `#catch` or `#catch/spark`. */
function wantedBy(hash: string): Wanted {
  const [product, planId] = hash.slice(1).split('/')
  if (product !== 'catch' && product !== 'pulse') return {}
  return isPlanId(planId) ? { product, planId } : { product }
}

mount(<Page />)
