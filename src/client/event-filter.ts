/** The filter of the event list, applied to single events. */
import type { CatchEvent, EventQuery } from '../catch/schema.ts'
import { EVENT_FILTERS, FILTER_NAMES, urlTexts } from '../lib/event-filters.ts'

/**
 * A filter of events. An omitted member matches every event. `method` and `contentType` are
 * case-insensitive, and `contentType` has no parameters. `q` searches path and query, as sent and decoded, headers (each
 * as `name: value`) and text body.
 *
 * ```ts
 * const filter: EventFilter = { access: 'authenticated', contentType: 'application/json' }
 * ```
 */
export type EventFilter = Omit<EventQuery, 'limit' | 'cursor' | 'after' | 'wait'>

/**
 * Whether an event matches the filter, by the rules of the service's event list, which also looks into compressed bodies.
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

/** A binary body is not searched. */
function hasText(event: CatchEvent, wanted: string): boolean {
  const { headers, contentType, body, bodyEncoding } = event
  const lines = headers.map(({ name, value }) => `${name}: ${value}`)
  const text = bodyEncoding === 'utf8' ? body : ''
  const texts = [...urlTexts(event), contentType ?? '', ...lines, text]
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
