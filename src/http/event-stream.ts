/**
 * Server-sent events (WHATWG HTML §9.2). The sender waits for the reader: nothing is fetched for a
 * client that has not taken what it was sent, so a slow reader costs what is on its way to it. That
 * is counted with all that answers reservation, and a reader that takes nothing is let go as of any answer.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { App } from './app.ts'
import { writeAndFlush } from './backpressure.ts'
import type { Reservation, ResponseBudget } from './response-budget.ts'

/** Proxies and clients give up on a silent connection after about half a minute. */
const HEARTBEAT_MS = 15_000
/** What is left of an ended stream may take this long to go out. */
const ENDING_MS = 2_000

export type StreamEvent = { event: string; data: string; id?: string }

export type EventStream = {
  /** Tells where the reader stands, so that it can resume before its first event. */
  mark(id: string): void
  /** Waits until there is room for so many bytes, before they are read. False once it is gone. */
  reserve(bytes: number): Promise<boolean>
  /** Waits for its turn to make events out of what was read. */
  waitTurn(): Promise<void>
  /** Runs a read that fills what was reserved. */
  whileReading<T>(read: () => Promise<T>): Promise<T>
  /** Sends one event; resolves, holding nothing, when it is on its way. False once it is gone. */
  send(event: StreamEvent): Promise<boolean>
  /** Sends several, and empties their list: it must not be kept while the reader takes its time. */
  sendAll(events: StreamEvent[]): Promise<boolean>
  /** Waits for a wake-up, at most so long. */
  wait(ms: number): Promise<void>
  /** Ends the current or the next `wait`. */
  wake(): void
  isOpen(): boolean
  end(): void
}

export type EventStreams = {
  /** Takes over the answer of a request, which concerns this capability. */
  open(reply: FastifyReply, capability: string): EventStream
  /** How many are open, by the pattern of their route, for the metrics. */
  countByRoute(): ReadonlyMap<string, number>
  /** Whether this answer was taken over. */
  isStream(reply: FastifyReply): boolean
}

/** The streams of one server, ended when it stops. */
export function createEventStreams(app: App, room: ResponseBudget): EventStreams {
  const streams = new Set<EventStream>()
  const replies = new WeakSet<FastifyReply>()
  const routes = new Map<string, number>()
  const count = (route: string, change: 1 | -1): void =>
    void routes.set(route, (routes.get(route) ?? 0) + change)
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
    for (const stream of streams) stream.end()
  })
  return {
    countByRoute: () => routes,
    isStream: (reply) => replies.has(reply),
    open(reply, capability) {
      reply.hijack()
      replies.add(reply)
      const route = reply.request.routeOptions.url ?? 'none'
      const response = reply.raw
      response.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // nginx would otherwise reservation events back until its buffer is full.
        'x-accel-buffering': 'no',
      })
      const stream = createStream(response, room.forStream(reply, capability))
      if (isStopping) stream.end()
      // A client that left while its request was looked at never closes again.
      if (!stream.isOpen()) return stream
      streams.add(stream)
      count(route, 1)
      response.on('close', () => {
        streams.delete(stream)
        count(route, -1)
        stream.wake()
      })
      return stream
    },
  }
}

function createStream(response: ServerResponse, reservation: Reservation): EventStream {
  let resume: (() => void) | null = null
  let isWoken = false
  const isOpen = (): boolean => !response.destroyed && !response.writableEnded
  if (isOpen()) {
    const heartbeat = setInterval(() => {
      if (isOpen() && !response.writableNeedDrain) response.write(':\n\n')
    }, HEARTBEAT_MS)
    response.on('close', () => clearInterval(heartbeat))
    response.flushHeaders()
  }

  function write(events: StreamEvent[]): Promise<boolean> {
    const bytes = Buffer.from(events.map(lines).join(''))
    events.length = 0
    reservation.resize(bytes.length)
    return drained(bytes.length > 0 ? writeAndFlush(response, bytes) : Promise.resolve(true))
  }

  async function drained(writing: Promise<boolean>): Promise<boolean> {
    const isTaken = await writing
    reservation.progressed()
    reservation.resize(0)
    return isTaken && isOpen()
  }

  return {
    isOpen,
    mark(id) {
      if (isOpen()) response.write(`id: ${id}\n\n`)
    },
    reserve: reservation.reserve,
    whileReading: reservation.whileReading,
    waitTurn: reservation.waitTurn,
    send: (event) => write([event]),
    sendAll: write,
    wait(ms) {
      return new Promise((resolve) => {
        if (isWoken || !isOpen()) {
          isWoken = false
          return resolve()
        }
        const timer = setTimeout(done, ms)
        function done(): void {
          clearTimeout(timer)
          resume = null
          isWoken = false
          resolve()
        }
        resume = done
      })
    },
    wake() {
      isWoken = true
      resume?.()
    },
    end() {
      if (isOpen()) {
        response.end()
        // A reader that has stopped reading would reservation up the server's own end.
        const timer = setTimeout(() => response.destroy(), ENDING_MS)
        response.on('close', () => clearTimeout(timer))
      }
      resume?.()
    },
  }
}

/** One event as it goes over the wire. */
function lines({ event, data, id }: StreamEvent): string {
  const parts = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\n${parts.join('')}\n`
}
