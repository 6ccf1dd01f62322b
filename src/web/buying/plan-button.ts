/** A plan as the button that buys it. */
import type { Catalog } from '../../client/index.ts'
import { el } from '../dom.ts'
import { sats } from '../format.ts'

type Products = Catalog['products']
type Plan = Products[keyof Products]['plans'][number]

export type PlanButton = {
  /** What it holds, in a sentence. */
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

/** What stands above the plans when none can be bought. */
export const CLOSED =
  'The checkout is closed: the Lightning node of this service is away. No invoice can be made now. What is already sold keeps working.'
