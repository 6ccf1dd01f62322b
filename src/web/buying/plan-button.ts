/** The button that shows a plan and buys it. */
import { el } from '../dom.ts'
import { sats } from '../format.ts'
import { type Offer, planTitle } from './terms.ts'

export type PlanButton = {
  /** Why this plan cannot be bought now, or null. It is shown in place of the limits. */
  refusal: string | null
  /** The address of the page names this plan. */
  isWanted?: boolean
  onChoose: () => unknown
}

export function planButton(
  { plan, terms }: Offer,
  { refusal, isWanted, onChoose }: PlanButton,
): HTMLElement {
  const { planId, priceSats, durationLabel, bestFor, available } = plan
  const why = available ? refusal : 'This plan is not on sale.'
  return el(
    'button',
    {
      type: 'button',
      class: 'plan',
      'data-plan': planId,
      'aria-current': isWanted === true ? 'true' : undefined,
      disabled: why !== null,
      onclick: onChoose,
    },
    el('span', { class: 'name' }, `${planTitle(planId)} · ${durationLabel}`),
    el('span', { class: 'price' }, available ? sats(priceSats) : 'not on sale'),
    el('span', { class: 'more' }, `${bestFor}.`),
    el('span', { class: why === null ? 'more' : 'more why' }, why ?? terms.limits),
  )
}

/** The notice above the plans while the checkout is closed. */
export const CLOSED =
  'The checkout is closed because this service cannot reach its Lightning node. What is already sold keeps working.'

/** Why each plan is off while the checkout is closed. */
export const CLOSED_PLAN = 'Cannot be bought while the checkout is closed.'
