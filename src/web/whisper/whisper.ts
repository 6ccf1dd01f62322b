/** The page that writes a WHISPER: it encrypts the content, buys the whisper and shows the share code. */
import type { Catalog, WhisperCapability } from '../../client/index.ts'
import { createPayments } from '../../client/payments.ts'
import { createWhisperClient, type SharedWhisper, sealWhisper } from '../../client/whisper.ts'
import { formatWhisperCode } from '../../protocol/whisper-code.ts'
import type { SealedWhisper } from '../../protocol/whisper-envelope.ts'
import { createCheckout, type Steps } from '../buying/checkout.ts'
import { guardTab } from '../buying/guard.ts'
import { CLOSED, CLOSED_PLAN, planButton } from '../buying/plan-button.ts'
import { offersOf, readsChosen, type Terms } from '../buying/terms.ts'
import { showTitle } from '../buying/title.ts'
import { button, notice, working } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { sentence } from '../format.ts'
import { catalog, clock } from '../service.ts'
import { draftForm } from './draft.ts'
import { showFiles } from './files.ts'
import { type PendingWhisper, pendingWhisper, storePending, wipePending } from './pending.ts'
import { largestFor, refusalOf, type WhisperPlan } from './plans.ts'
import { shareView } from './share.ts'

type Order = {
  terms: Terms
  pending: PendingWhisper
  /** The encrypted bytes. Null after a reload, when the service alone has them. */
  sealed: SealedWhisper | null
  /** The password, if this page knows it. */
  password: string | null
}

const place = byId('whisper')
const plans = el('div', { class: 'stack' })
const problems = el('div', { class: 'problems', 'aria-live': 'assertive' })
/** The plan that the address names: `/whisper#spark`. */
let wanted = location.hash.slice(1)
let onSale: Catalog | null = null
/** The problem that is shown, until its cause is gone. */
let shownProblem: string | null = null
const draft = draftForm(changed)
addEventListener('hashchange', () => {
  wanted = location.hash.slice(1)
  changed()
})
// The content is stored nowhere, so leaving the page would lose it.
guardTab(() => !draft.isEmpty())

const checkout = createCheckout<Order, SharedWhisper>({
  place,
  buy,
  present: (whisper, { terms, pending, password }, saving) => {
    const shown = { ...pending, terms, password: password ?? pending.suggested }
    return shareView(whisper, { ...saving, ...shown, onAnother: another })
  },
  asking: 'Sending the encrypted bytes, and asking for an invoice',
  keepOpen:
    'This page updates as soon as you pay. Keep this tab open until you have the code. You can reload it, but if you close this tab you cannot get it back.',
  onProof: ({ pending }, preimage) => {
    pending.preimage = preimage
    storePending(pending)
  },
  // From here on the code is at stake, which the checkout guards by itself.
  onPaid: () => draft.clear(),
  onEnded: wipePending,
  onGivenUp: showForm,
  renewalOf: (order) => (order.sealed ? () => begin(order) : null),
})

showFiles(byId<HTMLDetailsElement>('files'), byId('files-list'))
if (globalThis.isSecureContext) await start()
else {
  fill(
    place,
    notice('bad', el('p', {}, 'Browsers encrypt on HTTPS pages alone. Open this page over HTTPS.')),
  )
}

async function start(): Promise<void> {
  const pending = pendingWhisper()
  // The plans are loaded meanwhile, for a choice after this purchase.
  if (pending) {
    void loadPlans()
    return checkout.pay({ terms: pending.terms, pending, sealed: null, password: null })
  }
  wipePending()
  showForm()
  return loadPlans()
}

async function loadPlans(): Promise<void> {
  try {
    onSale = await catalog()
    draft.showLargest(largestFor(onSale.products.whisper.plans))
  } catch (error) {
    fill(plans, notice('bad', el('p', {}, sentence(error))), button('Try again', loadPlans))
  }
}

function showForm(): void {
  showTitle('Write a whisper')
  clearProblem()
  if (plans.childElementCount === 0) {
    fill(
      plans,
      ...[1, 2, 3].map(() => el('div', { class: 'skeleton plan', 'aria-hidden': 'true' })),
    )
  }
  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      draft.element,
      problems,
      el('h2', { class: 'plans-title' }, 'Choose how long it lives'),
      plans,
    ),
  )
}

/** The form may have changed, or the plans have been loaded. */
function changed(): void {
  // Also called while the form is made, when neither is set.
  if (shownProblem !== null && shownProblem !== draft.problem()?.text) clearProblem()
  if (onSale === null) return
  const { checkoutEnabled } = onSale
  fill(
    plans,
    !checkoutEnabled && notice('warn', el('p', {}, CLOSED)),
    ...offersOf(onSale, 'whisper').map((offer) => {
      const plan = offer.plan as WhisperPlan
      const refusal = checkoutEnabled
        ? refusalOf(plan, { ...draft, now: clock.now() })
        : CLOSED_PLAN
      return planButton(offer, {
        refusal,
        isWanted: offer.plan.planId === wanted,
        onChoose: () => seal(offer.terms),
      })
    }),
  )
}

function clearProblem(): void {
  shownProblem = null
  fill(problems)
}

async function seal(offered: Terms): Promise<void> {
  const problem = draft.problem()
  if (problem !== null) {
    shownProblem = problem.text
    fill(problems, notice('warn', el('p', {}, problem.text)))
    problem.input.focus()
    problems.scrollIntoView({ block: 'center' })
    return
  }
  fill(place, working('Encrypting in this page'))
  let sealed: SealedWhisper
  let content: Awaited<ReturnType<typeof draft.draft>>
  try {
    content = await draft.draft()
    sealed = await sealWhisper(content)
  } catch (error) {
    reportError(error)
    showForm()
    const why = 'This could not be encrypted: the file may have changed or gone. Nothing was sent.'
    shownProblem = why
    fill(problems, notice('bad', el('p', {}, why)))
    return
  }
  const { readLimit, revealAt = null, password = null, receipt, revealWhen } = content
  const { key, hasPassword } = sealed
  const terms = { ...offered, product: 'whisper' as const, limits: readsChosen(readLimit) }
  const pending: PendingWhisper = {
    terms,
    idempotencyKey: '',
    key,
    hasPassword,
    suggested: draft.suggested(),
    readLimit,
    revealAt,
    receipt,
    revealWhen,
    quote: null,
  }
  await begin({ terms, pending, sealed, password })
}

/** Asks for an invoice, under a new key. */
function begin(order: Order): Promise<void> {
  const { preimage, ...pending } = order.pending
  const fresh = { ...pending, idempotencyKey: crypto.randomUUID(), quote: null }
  // Stored first: whoever pays the invoice must have what claims and opens the whisper.
  storePending(fresh)
  return checkout.pay({ ...order, pending: fresh })
}

async function buy(
  { terms, pending, sealed }: Order,
  { http, onInvoice, ...steps }: Steps,
): Promise<SharedWhisper> {
  const { idempotencyKey, preimage, readLimit, revealAt, quote, key, hasPassword } = pending
  const { receipt, revealWhen } = pending
  // The user pays at most the price that the page showed.
  const payments = createPayments(http, { maxSats: terms.priceSats, now: clock.now })
  const claim = { idempotencyKey, ...(preimage === undefined ? {} : { preimage }) }
  if (sealed === null && quote !== null) {
    onInvoice(quote)
    const resource = await payments.collect(quote, { ...claim, ...steps })
    const capability = resource as WhisperCapability
    return { ...capability, code: formatWhisperCode({ ...capability, key, hasPassword }) }
  }
  if (sealed === null) throw new Error('neither bytes nor an order')
  return createWhisperClient(http, payments).buyWhisper({
    planId: terms.planId,
    sealed,
    readLimit,
    ...(revealAt ? { revealAt } : {}),
    receipt,
    ...(revealWhen === null ? {} : { revealWhen }),
    ...claim,
    ...steps,
    onInvoice(shown) {
      pending.quote = shown
      storePending(pending)
      onInvoice(shown)
    },
  })
}

/** Begins another whisper, after the code was taken or given up. */
function another(): void {
  checkout.stop()
  wipePending()
  draft.clear()
  showForm()
}
