/** Asks what to do with an unfinished purchase when another one is wanted. Whatever is chosen, nothing is lost. */
import type { PlanId } from '../../lib/product-names.ts'
import { button } from '../components.ts'
import { el } from '../dom.ts'
import type { Pending } from './pending.ts'
import { NOUNS, planTitle, termsSentence } from './terms.ts'

type Wanted = { product?: Pending['product']; planId?: PlanId }

export type UnfinishedOptions = {
  wanted: Wanted
  resume(): unknown
  start(wanted: Wanted): unknown
}

export function unfinishedView(
  pending: Pending,
  { wanted, resume, start }: UnfinishedOptions,
): HTMLElement {
  const { article, noun } = NOUNS[pending.product]
  const isPaid = pending.isPaid === true || pending.preimage !== undefined
  const other = wanted.product ?? pending.product
  const isSame = other === pending.product
  return el(
    'div',
    { class: 'card stack narrow' },
    el(
      'h2',
      { tabindex: '-1', id: 'step' },
      isPaid ? `You have not saved your ${noun}` : `You have an unpaid invoice for ${article}`,
    ),
    el('p', {}, termsSentence(pending)),
    el(
      'p',
      { class: 'quiet' },
      isPaid
        ? `It is paid. Show it and save it first, or it is lost when this tab is closed.`
        : 'Continue with it, or buy something else: this tab remembers the invoice until it expires.',
    ),
    el(
      'div',
      { class: 'row even' },
      button(isPaid ? `Show my ${noun}` : 'Continue', resume, { kind: 'primary' }),
      button(isSame ? `Buy ${planTitle(wanted.planId)} instead` : NOUNS[other].start, () =>
        start(wanted),
      ),
    ),
  )
}
