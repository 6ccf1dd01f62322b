/** Says which requests an inbox refused. */
import type { CatchRefusals, CatchStatus, RefusalReason } from '../../client/index.ts'
import { el } from '../dom.ts'
import { bytes, count, moment } from '../format.ts'

/** The requests that were refused, by reason. Null if there are none. */
export function refusalsView(
  { total, reasons }: CatchRefusals,
  status: CatchStatus,
): HTMLElement | null {
  const [first] = reasons.map(({ firstAt }) => firstAt).sort()
  if (first === undefined) return null
  return el(
    'div',
    {},
    el(
      'p',
      {},
      `${total === 1 ? '1 request was' : `${count(total)} requests were`} refused and not kept, since ${moment(first)}:`,
    ),
    el(
      'ul',
      { class: 'refusals small' },
      ...reasons.map(({ reason, count: times, lastAt }) =>
        el('li', {}, `${count(times)} × ${becauseOf(reason, status)}, last ${moment(lastAt)}`),
      ),
    ),
  )
}

function becauseOf(reason: RefusalReason, { maxBytesPerRequest }: CatchStatus): string {
  switch (reason) {
    case 'rate_limited':
      return 'too many at once'
    case 'too_large':
      return `too large (up to ${bytes(maxBytesPerRequest)} and 256 headers are accepted)`
    case 'storage_full':
      return 'storage full'
    case 'exhausted':
      return 'all requests of the plan were used'
    case 'suspended':
      return 'the inbox was suspended'
    case 'expired':
      return 'the inbox had expired'
    case 'incomplete':
      return 'the body stopped halfway'
    case 'service_busy':
      return 'the service was busy'
    case 'service_unavailable':
      return 'the service could not store it'
    default:
      // A newer service may have more reasons.
      return String(reason)
  }
}
