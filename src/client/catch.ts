/** CATCH from the owner's side. */
import type {
  CatchCapability,
  CatchEvent,
  CatchStatus,
  EventPage,
  EventQuery,
} from '../catch/schema.ts'
import type { Http } from './http.ts'

export type CatchClient = {
  /** State, limits and counters. */
  status(): Promise<CatchStatus>
  /** One page of events, newest first; pass `nextCursor` as `cursor` for the next. */
  page(query?: EventQuery): Promise<EventPage>
  /** Every event that the filter lets through, newest first, page after page. */
  events(query?: EventQuery): AsyncGenerator<CatchEvent, void, undefined>
  /** Deletes one event for good. */
  deleteEvent(eventId: string): Promise<void>
  /** Destroys the inbox, its events and both of its capabilities. */
  destroy(): Promise<void>
}

/** What the owner of an inbox needs of its capability. */
export type CatchOwner = Pick<CatchCapability, 'publicId' | 'ownerToken'>

export function createCatchClient(http: Http, { publicId, ownerToken }: CatchOwner): CatchClient {
  const path = `/api/catch/${encodeURIComponent(publicId)}`
  const token = ownerToken

  async function page(query: EventQuery = {}): Promise<EventPage> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) search.set(name, String(value))
    const suffix = search.size > 0 ? `?${search}` : ''
    return (await http.get({ path: `${path}/events${suffix}`, token })) as EventPage
  }

  return {
    status: async () => (await http.get({ path, token })) as CatchStatus,
    page,
    async *events(query = {}) {
      let cursor: number | null | undefined = query.cursor
      for (;;) {
        const { events, nextCursor } = await page({
          ...query,
          ...(typeof cursor === 'number' ? { cursor } : {}),
        })
        yield* events
        if (nextCursor === null) return
        cursor = nextCursor
      }
    },
    async deleteEvent(eventId) {
      await http.get({
        method: 'DELETE',
        path: `${path}/events/${encodeURIComponent(eventId)}`,
        token,
      })
    },
    async destroy() {
      await http.get({ method: 'DELETE', path, token })
    },
  }
}
