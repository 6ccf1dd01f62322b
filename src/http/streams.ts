/**
 * Server-sent events (WHATWG HTML §9.2) with backpressure: the store is read for a client only after the
 * client has taken what was sent, so a slow reader holds little memory. That memory counts in the response
 * budget, and a stalled reader is disconnected, like readers of other responses.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { App } from './app.ts'
import type { Memory, Reservation } from './memory.ts'
import { writeAndFlush } from './sending.ts'

/** Proxies and clients drop a silent connection after about half a minute. */
const HEARTBEAT_MS = 15_000
/** The rest of an ended stream may take this long to be sent. */
const FLUSH_TIMEOUT_MS = 2_000

export type StreamEvent = { event: string; data: string; id?: string }

/** A silent stream, or a waiting request, looks for news this often, because hints may be lost and expiry sends none. */
export const POLL_EVERY_MS = 5_000

/** The streams and waiting requests of a server. */
export type EventStreams = ReturnType<typeof createEventStreams>

/** The streams of one server, ended when it stops. */
export function createEventStreams(app: App, memory: Pick<Memory, 'forAnswer'>) {
  /** By the route of each. */
  const open = new Map<string, Set<{ end(): void }>>()
  const replies = new WeakSet<FastifyReply>()
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
    for (const streams of open.values()) for (const { end } of streams) end()
  })
  function countUntilClosed(reply: FastifyReply, stream: { end(): void }): void {
    const route = reply.request.routeOptions.url ?? 'none'
    const streams = open.get(route) ?? new Set()
    open.set(route, streams.add(stream))
    reply.raw.once('close', () => streams.delete(stream))
  }

  return {
    /** The number of open streams and waiting requests by route pattern, for the metrics. */
    countByRoute: (): ReadonlyMap<string, number> =>
      new Map([...open].map(([route, { size }]) => [route, size])),
    /** Whether this response has become a stream, or its request has waited. */
    isStream: (reply: FastifyReply): boolean => replies.has(reply),
    /** Turns the response to a request about this capability into a stream. */
    open(reply: FastifyReply, capability: string): EventStream {
      reply.hijack()
      replies.add(reply)
      const response = reply.raw
      response.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        // nginx would otherwise hold events back until its buffer is full.
        'x-accel-buffering': 'no',
      })
      const stream = createStream(response, memory.forAnswer(reply, capability, { isStream: true }))
      if (isStopping) stream.end()
      // If the client has disconnected already, there will be no close event.
      if (!stream.isOpen()) return stream
      countUntilClosed(reply, stream)
      response.on('close', stream.wake)
      return stream
    },
    /** Lets a request wait for news, at most this long, before it is answered. */
    longPoll(reply: FastifyReply, ms: number): LongPoll {
      replies.add(reply)
      const poll = createLongPoll(reply.raw, ms)
      if (isStopping) poll.end()
      if (!reply.raw.destroyed) countUntilClosed(reply, poll)
      return poll
    },
  }
}

export type EventStream = ReturnType<typeof createStream>

function createStream(response: ServerResponse, reservation: Reservation) {
  const isOpen = (): boolean => !response.destroyed && !response.writableEnded
  const { wait, wake } = createNews(isOpen)
  if (isOpen()) {
    const heartbeat = setInterval(() => {
      // A reader that takes nothing gets none, which would look like progress.
      if (isOpen() && response.writableLength === 0) response.write(':\n\n')
    }, HEARTBEAT_MS)
    response.on('close', () => clearInterval(heartbeat))
    response.flushHeaders()
  }

  /** Sends several events. The list is emptied, so that a slow reader does not keep it in memory. */
  async function sendAll(events: StreamEvent[]): Promise<boolean> {
    const bytes = Buffer.from(events.map(lines).join(''))
    events.length = 0
    reservation.resize(bytes.length)
    const isTaken = bytes.length === 0 || (await writeAndFlush(response, bytes))
    reservation.progressed()
    reservation.resize(0)
    return isTaken && isOpen()
  }

  return {
    isOpen,
    /** Sends an id without an event, so that the client can resume from there. */
    mark(id: string): void {
      if (isOpen()) response.write(`id: ${id}\n\n`)
    },
    /** Reserves memory for bytes that are about to be read. False once the client has disconnected. */
    reserve: reservation.reserve,
    /** Runs a read into the reserved memory. */
    whileReading: reservation.whileReading,
    /** Waits for a turn of the event loop in which to serialize events. */
    waitTurn: reservation.waitTurn,
    /** Sends one event and releases its memory. False once the client has disconnected. */
    send: (event: StreamEvent): Promise<boolean> => sendAll([event]),
    sendAll,
    /** Waits for `wake`, but at most this long. */
    wait,
    /** Ends the current or the next `wait`. */
    wake,
    end(): void {
      if (isOpen()) {
        response.end()
        // A stalled reader must not delay the shutdown of the server.
        const timer = setTimeout(() => response.destroy(), FLUSH_TIMEOUT_MS)
        response.on('close', () => clearTimeout(timer))
      }
      wake()
    },
  }
}

/** One event in the wire format. */
function lines({ event, data, id }: StreamEvent): string {
  const parts = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\n${parts.join('')}\n`
}

// A request that is answered when there is news, or when its time is over. It holds nothing meanwhile.

export type LongPoll = ReturnType<typeof createLongPoll>

/** @param ms how long the request waits at most. */
function createLongPoll(response: ServerResponse, ms: number) {
  let isOver = false
  const isWaiting = (): boolean => !isOver && !response.destroyed
  const { wait, wake } = createNews(isWaiting)
  const timer = setTimeout(end, ms)
  response.once('close', end)
  if (response.destroyed) end()

  function end(): void {
    isOver = true
    clearTimeout(timer)
    wake()
  }

  return {
    /** Whether to go on waiting: there is time left, the client is there, and the server does not stop. */
    isWaiting,
    /** Waits for `wake`, but at most this long, and no longer than `isWaiting`. */
    wait,
    /** Ends the current or the next `wait`. */
    wake,
    /** Ends the waiting. The request is then answered as if its time were over. */
    end,
  }
}

// A wait that news end. News that come while nobody waits are not lost: they end the next wait at once.

/** @param isOpen whether there is anything to wait for. */
export function createNews(isOpen: () => boolean) {
  let resume: (() => void) | null = null
  let isWoken = false
  return {
    /** Waits for news, but at most this long. */
    wait(ms: number): Promise<void> {
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
    /** Ends the current or the next wait. */
    wake(): void {
      isWoken = true
      resume?.()
    },
  }
}
