/** The filter of the event list, for events that come one by one. */
import type { CatchEvent, EventQuery } from '../catch/schema.ts'
import { mediaType } from '../lib/media-type.ts'

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
  const { access, method, contentType, q } = filter
  if (access !== undefined && event.access !== access) return false
  if (method !== undefined && event.method !== method.toUpperCase()) return false
  if (contentType !== undefined && mediaType(event.contentType) !== mediaType(contentType)) {
    return false
  }
  return !q || hasText(event, q.toLowerCase())
}

/** Bytes that are no text have no characters to find. */
function hasText({ path, query, contentType, body, bodyEncoding }: CatchEvent, wanted: string) {
  const texts = [path, query, contentType ?? '', bodyEncoding === 'utf8' ? body : '']
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
