/** The filter of the event list, for events that come one by one. */
import type { CatchEvent, EventQuery } from '../catch/schema.ts'
import { EVENT_FILTERS, FILTER_NAMES } from '../lib/event-filters.ts'

/**
 * Which events are meant; what is left out lets all through. `method` and `contentType` in any case,
 * the latter without its parameters; `q` is looked for in path, query, content type and text body.
 *
 * ```ts
 * const filter: EventFilter = { access: 'authenticated', contentType: 'application/json' }
 * ```
 */
export type EventFilter = Omit<EventQuery, 'limit' | 'cursor'>

/**
 * Whether the service would list this event under this filter.
 *
 * ```ts
 * matchesFilter(event, { method: 'POST', contentType: 'application/json', q: 'invoice.paid' })
 * ```
 */
export function matchesFilter(event: CatchEvent, filter: EventFilter): boolean {
  const isEqual = FILTER_NAMES.every((name) => {
    const asked = filter[name]
    const { normalized, fieldOf } = EVENT_FILTERS[name]
    return asked === undefined || fieldOf(event) === normalized(asked)
  })
  return isEqual && (!filter.q || hasText(event, filter.q.toLowerCase()))
}

/** Bytes that are no text have no characters to find. */
function hasText({ path, query, contentType, body, bodyEncoding }: CatchEvent, wanted: string) {
  const texts = [path, query, contentType ?? '', bodyEncoding === 'utf8' ? body : '']
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
