/** Shows why a purchase did not end with a capability, and what can be done now. */
import { MayflyError } from '../../client/errors.ts'
import { button, notice } from '../components.ts'
import { el } from '../dom.ts'
import { sentence } from '../format.ts'
import { type Terms, termsLine } from './terms.ts'

export type FailureOptions = {
  terms: Terms
  /** Asks for the same order again. */
  onAgain(): unknown
  /** Asks for a new invoice for the same plan. Absent if the page cannot. */
  onRenew?: (() => unknown) | undefined
  onLeave(): unknown
}

/** After these errors the order may still be paid or delivered, so its key must be kept. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

const TITLES: Record<string, string> = {
  'order expired': 'Invoice expired',
  'already delivered': 'Already handed out',
  'order refunded': 'Paid back',
  'order not found': 'Order not found',
}

/** Whether the service has refused this order for good. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof MayflyError)) return false
  return error.status < 500 && error.status !== 429 && !UNDECIDED.includes(error.phrase)
}

/** The heading of a failure. */
export function failureTitle(error: unknown): string {
  if (!isRefusal(error)) return 'Not finished'
  return TITLES[(error as MayflyError).phrase] ?? 'Nothing was bought'
}

export function failureView(
  error: unknown,
  { terms, onAgain, onRenew, onLeave }: FailureOptions,
): HTMLElement {
  const isOver = isRefusal(error)
  const isExpired = error instanceof MayflyError && error.phrase === 'order expired'
  return el(
    'div',
    { class: 'card stack narrow' },
    el(
      'div',
      { class: 'purchase' },
      el('p', { class: 'terms' }, termsLine(terms)),
      el('h2', { tabindex: '-1', id: 'step' }, failureTitle(error)),
    ),
    notice('bad', el('p', {}, sentence(error))),
    el(
      'div',
      { class: 'row' },
      !isOver && button('Ask again for the same order', onAgain, { kind: 'primary' }),
      isExpired && onRenew && button('Get a new invoice', onRenew, { kind: 'primary' }),
      button('Choose a plan', onLeave),
    ),
  )
}
