/** The button that shows a plan and buys it. */
import type { Catalog } from '../../client/index.ts'
import { el } from '../dom.ts'
import { sats } from '../format.ts'

type Products = Catalog['products']
type Plan = Products[keyof Products]['plans'][number]

export type PlanButton = {
  /** A sentence about the plan's limits. */
  holds: string
  isOpen: boolean
  onChoose: () => unknown
}

export function planButton(plan: Plan, { holds, isOpen, onChoose }: PlanButton): HTMLElement {
  const { planId, priceSats, durationLabel, bestFor, available } = plan
  return el(
    'button',
    {
      type: 'button',
      class: 'plan',
      'data-plan': planId,
      disabled: !(available && isOpen),
      onclick: onChoose,
    },
    el(
      'span',
      { class: 'name' },
      `${planId[0]?.toUpperCase()}${planId.slice(1)} · ${durationLabel}`,
    ),
    el('span', { class: 'price' }, available ? sats(priceSats) : 'not on sale'),
    el('span', { class: 'more' }, `${bestFor}.`),
    el('span', { class: 'more' }, holds),
  )
}

/** The notice above the plans while the checkout is closed. */
export const CLOSED =
  'The checkout is closed: the Lightning node of this service is away. No invoice can be made now. What is already sold keeps working.'
