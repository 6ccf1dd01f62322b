/**
 * Server-sent events (WHATWG HTML §9.2). The sender waits for the reader: nothing is fetched for a
 * client that has not taken what it was sent, so a slow reader costs one page and nobody's time.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { App } from './app.ts'

/** Proxies and clients give up on a silent connection after about half a minute. */
const HEARTBEAT_MS = 15_000
/** A reader that takes nothing for this long is gone, whatever its socket says. */
const STALLED_MS = 60_000
/** What is left of an ended stream may take this long to go out. */
const ENDING_MS = 2_000

export type EventStream = {
  /** Tells where the reader stands, so that it can resume before its first event. */
  mark(id: string): void
  /** Sends one event; resolves when the client has room for the next. False once it is gone. */
  send(event: { event: string; data: string; id?: string }): Promise<boolean>
  /** Waits for a wake-up, at most so long. */
  wait(ms: number): Promise<void>
  /** Ends the current or the next `wait`. */
  wake(): void
  isOpen(): boolean
  end(): void
}

export type EventStreams = {
  /** Takes over the answer of a request. */
  open(reply: FastifyReply): EventStream
  /** How many are open. */
  count(): number
  /** How many are open, by the pattern of their route, for the metrics. */
  countByRoute(): ReadonlyMap<string, number>
  /** Whether this answer was taken over. */
  isStream(reply: FastifyReply): boolean
}

/** The streams of one server, ended when it stops. */
export function createEventStreams(app: App): EventStreams {
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
    count: () => streams.size,
    countByRoute: () => routes,
    isStream: (reply) => replies.has(reply),
    open(reply) {
      reply.hijack()
      replies.add(reply)
      const route = reply.request.routeOptions.url ?? 'none'
      const response = reply.raw
      response.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // nginx would otherwise hold events back until its buffer is full.
        'x-accel-buffering': 'no',
      })
      const stream = createStream(response)
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

function createStream(response: ServerResponse): EventStream {
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

  return {
    isOpen,
    mark(id) {
      if (isOpen()) response.write(`id: ${id}\n\n`)
    },
    async send({ event, data, id }) {
      if (!isOpen()) return false
      const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
      const isTaken = response.write(
        `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\n${lines.join('')}\n`,
      )
      if (!isTaken && !(await drained(response))) response.destroy()
      return isOpen()
    },
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
        // A reader that has stopped reading would hold up the server's own end.
        const timer = setTimeout(() => response.destroy(), ENDING_MS)
        response.on('close', () => clearTimeout(timer))
      }
      resume?.()
    },
  }
}

/** True when the socket has room again, false when it closed or stalled. */
function drained(response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(false), STALLED_MS)
    const onDrain = (): void => done(true)
    const onClose = (): void => done(false)
    function done(hasRoom: boolean): void {
      clearTimeout(timer)
      response.off('drain', onDrain)
      response.off('close', onClose)
      resolve(hasRoom)
    }
    response.on('drain', onDrain)
    response.on('close', onClose)
  })
}
