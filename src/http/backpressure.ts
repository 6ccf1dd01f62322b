/**
 * How answers leave, whatever their route: one after another on a connection, large ones in slices,
 * and for as long as their reader takes them. What is not taken is let go.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify'
import type { Reservation } from './response-budget.ts'

/** Bytes that go to a socket at a time: so often is it seen whether its reader takes them. */
const SLICE_BYTES = 64 * 1024
/**
 * Requests of one connection that may wait while an answer to an earlier one is on its way. Clients
 * that pipeline at all send a few; a connection with more is closed.
 */
const PIPELINED_MOST = 64
const LOOK_MS = 5_000
/** Looks between which a socket took nothing: a minute. Its total time has no limit. */
const STILL_LOOKS_MOST = 12

type Connection = {
  /** The last answer that was begun or waits to be. */
  last: FastifyReply['raw'] | null
  waiting: number
  /** Bytes that the socket had taken at the last look, and for how many looks that has not changed. */
  sent: number
  stillLooks: number
}

export type Backpressure = {
  /** Mounted before every other hook, so that no work is done for an answer that has to wait. */
  mount(app: FastifyInstance): void
  /** The connections of the server that are open. */
  sockets(): Iterable<Socket>
  /** How many were closed because their reader took nothing. */
  closedSockets(): number
}

/** @param holdOf what the answer of a request holds, if that is counted. */
export function createBackpressure(
  holdOf: (request: FastifyRequest) => Reservation | undefined = () => undefined,
): Backpressure {
  const connections = new Map<Socket, Connection>()
  let closed = 0

  function mount(app: FastifyInstance): void {
    app.server.on('connection', (socket) => {
      connections.set(socket, { last: null, waiting: 0, sent: 0, stillLooks: 0 })
      socket.once('close', () => connections.delete(socket))
    })

    app.addHook('onRequest', (request, reply, done) => {
      const { socket } = request.raw
      const connection = connections.get(socket)
      if (!connection) return done()
      const before = connection.last
      connection.last = reply.raw
      if (before === null || before.writableFinished || before.destroyed) return done()
      if (++connection.waiting > PIPELINED_MOST) {
        socket.destroy()
        return
      }
      before.once('close', () => {
        connection.waiting--
        // Nobody is there any more to be answered.
        if (!socket.destroyed) done()
      })
    })

    const sliceLarge: onSendHookHandler<unknown> = (request, reply, payload, done) => {
      const bytes =
        typeof payload === 'string' && payload.length > SLICE_BYTES ? Buffer.from(payload) : payload
      if (!Buffer.isBuffer(bytes) || bytes.length <= SLICE_BYTES) return done(null, payload)
      reply.header('content-length', bytes.length)
      done(null, inSlices(bytes, holdOf(request)))
    }
    app.addHook('onRoute', (route) => {
      // What answers without a body has none to slice, and is what is asked most often.
      if (route.config?.hasEmptyResponse) return
      const own = route.onSend === undefined ? [] : [route.onSend].flat()
      route.onSend = [...own, sliceLarge]
    })

    const looking = setInterval(() => {
      for (const [socket, connection] of connections) {
        const unsent = socket.writableLength
        const sent = socket.bytesWritten - unsent
        connection.stillLooks =
          unsent > 0 && sent === connection.sent ? connection.stillLooks + 1 : 0
        connection.sent = sent
        if (connection.stillLooks < STILL_LOOKS_MOST) continue
        closed++
        socket.destroy()
      }
    }, LOOK_MS).unref()
    app.addHook('onClose', async () => clearInterval(looking))
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
 * Sends an answer whose parts are made one after another, each when its reader has taken the one
 * before. The first is at hand already, so that what goes wrong before it is an answer of its own.
 */
export async function streamParts(
  reply: FastifyReply,
  reservation: Reservation,
  first: Buffer,
  rest: AsyncGenerator<Buffer, Buffer>,
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
    // It cannot be taken back: an answer that breaks off is one that its reader asks for again.
    response.destroy()
  }
}

/** Writes, and waits until all of it is out of this process. False once the reader has gone. */
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
