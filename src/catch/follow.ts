/** The live stream of an inbox: stored events, then new ones, each once and in order. */
import type { FastifyRequest } from 'fastify'
import { invalid, Problem } from '../http/errors.ts'
import { type EventStream, POLL_EVERY_MS, type StreamEvent } from '../http/streams.ts'
import { eventJson } from './event.ts'
import type { EventRow } from './event-rows.ts'
import { equalOf } from './list.ts'
import type { StreamQuery } from './schema.ts'
import type { CatchService } from './service.ts'

/** Sends stored events, then new ones, until the inbox ends or the client leaves. */
export async function follow({
  service,
  publicId,
  from,
  query,
  stream,
  gone,
}: {
  service: CatchService
  publicId: string
  from: number
  query: StreamQuery
  stream: EventStream
  gone: AbortSignal
}): Promise<void> {
  const { q: text = '' } = query
  const equal = equalOf(query)
  let above = from
  while (stream.isOpen()) {
    const unread = await service
      .after(publicId, { above, equal, text, gone }, stream)
      .catch(nothingNow)
    const { events, upTo = above, ended } = unread
    const isIdle = events.length === 0
    above = upTo
    if (!isIdle) await stream.waitTurn()
    // `splice` empties the list, so that a slow reader does not keep rows in memory.
    if (!isIdle && !(await stream.sendAll(events.splice(0).map(capture)))) return
    // Without a word: its clients come back, and find it resumed or over.
    if (ended === 'suspended') return
    if (ended) {
      await stream.send({ event: 'end', data: JSON.stringify({ status: ended }) })
      return
    }
    if (isIdle) await stream.wait(POLL_EVERY_MS)
  }
}

/** Too many searches of this inbox run now. The stream looks again later. */
function nothingNow(error: unknown): { events: EventRow[]; upTo?: number; ended: null } {
  if (error instanceof Problem && error.phrase === 'rate limited')
    return { events: [], ended: null }
  throw error
}

const capture = (event: EventRow): StreamEvent => ({
  event: 'capture',
  data: eventJson(event),
  id: String(event.sequence),
})

/** The last sequence that the client received, or null if it wants only new events. */
export function lastEventId(request: FastifyRequest): number | null {
  const value = request.headers['last-event-id']
  if (value === undefined || value === '') return null
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw invalid('invalid query', { field: 'Last-Event-ID', expected: 'a sequence' })
}
