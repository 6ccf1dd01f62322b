/** The page that writes a WHISPER: it encrypts the content, buys the whisper and shows the share code. */
import type { Catalog } from '../../client/index.ts'
import { createPayments } from '../../client/payments.ts'
import { createWhisperClient, type SharedWhisper, sealWhisper } from '../../client/whisper.ts'
import type { SealedWhisper } from '../../protocol/whisper-envelope.ts'
import { createCheckout } from '../buying/checkout.ts'
import { CLOSED, planButton } from '../buying/plan-button.ts'
import { button, notice, working } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { bytes, count, sentence } from '../format.ts'
import { catalog } from '../service.ts'
import { draftForm } from './draft.ts'
import { showFiles } from './files.ts'
import { shareView } from './share.ts'

type Plan = Catalog['products']['whisper']['plans'][number]

/** A purchase. It is only in this tab's memory: neither the text nor the key is stored. */
type Order = {
  planId: Plan['planId']
  priceSats: number
  idempotencyKey: string
  preimage?: string
  sealed: SealedWhisper
  readLimit: number
  revealAt: Date | null
}

const place = byId('whisper')
const plans = el('div', { class: 'stack' })
const problems = el('div', { class: 'problems', 'aria-live': 'assertive' })
let onSale: Catalog | null = null
/** The order of the current purchase, for the text beside the code. */
let current: Order | null = null
const draft = draftForm(showPlans)

const checkout = createCheckout<Order, SharedWhisper>({
  place,
  buy: (order, { http, ...steps }) => {
    const { planId, priceSats, idempotencyKey, preimage, sealed, readLimit, revealAt } = order
    // The user pays at most the price that the page showed.
    const payments = createPayments(http, { maxSats: priceSats })
    return createWhisperClient(http, payments).buyWhisper({
      planId,
      idempotencyKey,
      sealed,
      readLimit,
      ...(revealAt ? { revealAt } : {}),
      ...(preimage === undefined ? {} : { preimage }),
      ...steps,
    })
  },
  present: (whisper, saving) =>
    shareView(whisper, {
      ...saving,
      readLimit: current?.readLimit ?? 1,
      revealAt: current?.revealAt ?? null,
      hasPassword: current?.sealed.hasPassword ?? false,
    }),
  asking: 'Sending the encrypted bytes, and asking for an invoice',
  keepOpen:
    'Keep this tab open until you have the code: a reload or a closed tab loses it, because the key is nowhere else.',
  onProof: (preimage) => {
    if (current) current.preimage = preimage
  },
  onEnded: () => {},
  onGivenUp: showForm,
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
  showForm()
  try {
    onSale = await catalog()
    showPlans()
  } catch (error) {
    fill(plans, notice('bad', el('p', {}, sentence(error))), button('Try again', start))
  }
}

function showForm(): void {
  fill(problems)
  if (onSale === null) {
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

function showPlans(): void {
  if (onSale === null) return
  const { checkoutEnabled, products } = onSale
  fill(
    plans,
    !checkoutEnabled && notice('warn', el('p', {}, CLOSED)),
    ...products.whisper.plans.map((plan) => {
      const refusal = refusalOf(plan)
      return planButton(plan, {
        holds: refusal ?? limitsOf(plan),
        isOpen: checkoutEnabled && refusal === null,
        onChoose: () => seal(plan),
      })
    }),
  )
}

/** Why this plan cannot hold the draft, or null. Checked before anything is paid. */
function refusalOf({ maxCiphertextBytes, readLimit }: Plan): string | null {
  const length = draft.sealedLength() ?? 0
  if (length > maxCiphertextBytes) {
    return `Too small: it takes up to ${bytes(maxCiphertextBytes)} encrypted, and this is ${bytes(length)}.`
  }
  if ((draft.readLimit() ?? 0) > readLimit) return `Too few: it has ${count(readLimit)} reads.`
  return null
}

function limitsOf({ readLimit, maxCiphertextBytes }: Plan): string {
  return `Up to ${count(readLimit)} reads, ${bytes(maxCiphertextBytes)} encrypted.`
}

async function seal(plan: Plan): Promise<void> {
  const problem = draft.problem()
  if (problem !== null) {
    fill(problems, notice('warn', el('p', {}, problem)))
    problems.scrollIntoView({ block: 'center' })
    return
  }
  fill(place, working('Encrypting in this page'))
  try {
    const { readLimit = plan.readLimit, revealAt = null, ...content } = await draft.draft()
    const sealed = await sealWhisper(content)
    const { planId, priceSats } = plan
    const idempotencyKey = crypto.randomUUID()
    current = { planId, priceSats, idempotencyKey, sealed, readLimit, revealAt }
  } catch (error) {
    reportError(error)
    showForm()
    const why = 'This could not be encrypted: the file may have changed or gone. Nothing was sent.'
    fill(problems, notice('bad', el('p', {}, why)))
    return
  }
  await checkout.pay(current)
}
