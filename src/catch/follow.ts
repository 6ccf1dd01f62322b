/** The live stream of an inbox: what is there, then what comes, each event once and in order. */
import type { FastifyRequest } from 'fastify'
import { problem } from '../http/errors.ts'
import { type EventStream, POLL_EVERY_MS, type StreamEvent } from '../http/event-stream.ts'
import { eventJson } from './event.ts'
import type { EventRow } from './event-store.ts'
import type { CatchService } from './service.ts'

/** Sends what is there, then what comes, until the inbox or the client ends. */
export async function follow(
  service: CatchService,
  publicId: string,
  from: number,
  stream: EventStream,
): Promise<void> {
  let told = from
  while (stream.isOpen()) {
    const { events, ended } = await service.after(publicId, told, stream)
    const isIdle = events.length === 0
    told = events.at(-1)?.sequence ?? told
    if (!isIdle) await stream.waitTurn()
    // Emptied, as what is made of it: no row is held while the reader takes its time.
    if (!isIdle && !(await stream.sendAll(events.splice(0).map(capture)))) return
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

/** The sequence that a client has got to, or null where it starts with what comes. */
export function lastEventId(request: FastifyRequest): number | null {
  const value = request.headers['last-event-id']
  if (value === undefined || value === '') return null
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw problem('invalid query')
}
