/**
 * Backpressure for every response: pipelined requests are handled one after another, large responses
 * are written in slices, and a connection whose reader has stalled is closed.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify'
import type { Reservation } from './response-budget.ts'

/** Bytes written to a socket at a time, after each of which the reader's progress is known. */
const SLICE_BYTES = 64 * 1024
/**
 * Requests that may wait on one connection behind an earlier response. Clients that pipeline at all send
 * a few; a connection with more is closed.
 */
const MAX_PIPELINED = 64
const CHECK_MS = 5_000
/** A socket is closed after this many checks without progress: a minute. Its total time is not limited. */
const MAX_STALLED_CHECKS = 12

type Connection = {
  /** The response to the latest request. */
  last: FastifyReply['raw'] | null
  waiting: number
  /** Bytes that the socket had sent at the last check, and for how many checks that has not changed. */
  sent: number
  stalledChecks: number
}

export type Backpressure = {
  /** Must be mounted before all other hooks, so that a request that has to wait causes no work. */
  mount(app: FastifyInstance): void
  /** The open connections of the server. */
  sockets(): Iterable<Socket>
  /** How many were closed because their reader had stalled. */
  closedSockets(): number
}

/** @param reservationOf the reservation in the response budget, if the response is counted. */
export function createBackpressure(
  reservationOf: (request: FastifyRequest) => Reservation | undefined = () => undefined,
): Backpressure {
  const connections = new Map<Socket, Connection>()
  let closed = 0

  function mount(app: FastifyInstance): void {
    app.server.on('connection', (socket) => {
      connections.set(socket, { last: null, waiting: 0, sent: 0, stalledChecks: 0 })
      socket.once('close', () => connections.delete(socket))
    })

    app.addHook('onRequest', (request, reply, done) => {
      const { socket } = request.raw
      const connection = connections.get(socket)
      if (!connection) return done()
      const before = connection.last
      connection.last = reply.raw
      if (before === null || before.writableFinished || before.destroyed) return done()
      if (++connection.waiting > MAX_PIPELINED) {
        socket.destroy()
        return
      }
      before.once('close', () => {
        connection.waiting--
        // On a closed connection nobody waits for the response.
        if (!socket.destroyed) done()
      })
    })

    // biome-ignore lint/complexity/useMaxParams: Fastify calls it.
    const sliceLarge: onSendHookHandler<unknown> = (request, reply, payload, done) => {
      const bytes =
        typeof payload === 'string' && payload.length > SLICE_BYTES ? Buffer.from(payload) : payload
      if (!Buffer.isBuffer(bytes) || bytes.length <= SLICE_BYTES) return done(null, payload)
      reply.header('content-length', bytes.length)
      done(null, inSlices(bytes, reservationOf(request)))
    }
    app.addHook('onRoute', (route) => {
      // The most frequent routes have empty responses, and skip the hook.
      if (route.config?.hasEmptyResponse) return
      const own = route.onSend === undefined ? [] : [route.onSend].flat()
      route.onSend = [...own, sliceLarge]
    })

    const checking = setInterval(() => {
      for (const [socket, connection] of connections) {
        const unsent = socket.writableLength
        const sent = socket.bytesWritten - unsent
        connection.stalledChecks =
          unsent > 0 && sent === connection.sent ? connection.stalledChecks + 1 : 0
        connection.sent = sent
        if (connection.stalledChecks < MAX_STALLED_CHECKS) continue
        closed++
        socket.destroy()
      }
    }, CHECK_MS).unref()
    app.addHook('onClose', async () => clearInterval(checking))
  }

  return { mount, sockets: () => connections.keys(), closedSockets: () => closed }
}

function inSlices(bytes: Buffer, reservation: Reservation | undefined): Readable {
  let at = 0
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      if (at > 0) reservation?.progressed()
      const slice = bytes.subarray(at, at + SLICE_BYTES)
      at += slice.length
      this.push(slice.length > 0 ? slice : null)
    },
  })
}

/**
 * Streams a response in parts: each is made when the client has taken the one before. The first part is
 * made by the caller, so that an error up to then is still an ordinary error response.
 */
export async function streamParts(
  reply: FastifyReply,
  reservation: Reservation,
  { first, rest }: { first: Buffer; rest: AsyncGenerator<Buffer, Buffer> },
): Promise<void> {
  reply.hijack()
  const response = reply.raw
  response.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>)
  try {
    for (let part = first; ; ) {
      if (!(await writeAndFlush(response, part))) return
      reservation.progressed()
      const next = await rest.next()
      part = next.value
      if (!next.done) continue
      response.end(part)
      return
    }
  } catch {
    // The status is sent already, so an incomplete response tells the client to try again.
    response.destroy()
  }
}

/** Writes, and waits until the bytes have left the process. False once the client has disconnected. */
export function writeAndFlush(response: FastifyReply['raw'], bytes: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve(false)
    const done = (): void => {
      response.off('close', done)
      resolve(!response.destroyed)
    }
    response.on('close', done)
    response.write(bytes, done)
  })
}
