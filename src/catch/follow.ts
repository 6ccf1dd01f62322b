/** The live stream of an inbox: stored events, then new ones, each once and in order. */
import type { FastifyRequest } from 'fastify'
import { invalid } from '../http/errors.ts'
import { type EventStream, POLL_EVERY_MS, type StreamEvent } from '../http/streams.ts'
import { eventJson } from './event.ts'
import type { EventRow } from './event-rows.ts'
import type { CatchService } from './service.ts'

/** Sends stored events, then new ones, until the inbox ends or the client leaves. */
export async function follow({
  service,
  publicId,
  from,
  stream,
}: {
  service: CatchService
  publicId: string
  from: number
  stream: EventStream
}): Promise<void> {
  let sent = from
  while (stream.isOpen()) {
    const { events, ended } = await service.after(publicId, sent, stream)
    const isIdle = events.length === 0
    sent = events.at(-1)?.sequence ?? sent
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
