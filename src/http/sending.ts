/** Sends large answers in slices, so that it is known how far their readers are. */

import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, onSendHookHandler } from 'fastify'
import type { Reservation } from './memory.ts'

/** Bytes written to a socket at a time, after each of which the reader's progress is known. */
const SLICE_BYTES = 64 * 1024

/** Slices the large answers of all routes that are mounted from now on. */
export function sliceAnswers(app: FastifyInstance): void {
  // biome-ignore lint/complexity/useMaxParams: Fastify calls it.
  const sliceLarge: onSendHookHandler<unknown> = (request, reply, payload, done) => {
    const bytes =
      typeof payload === 'string' && payload.length > SLICE_BYTES ? Buffer.from(payload) : payload
    if (!Buffer.isBuffer(bytes) || bytes.length <= SLICE_BYTES) return done(null, payload)
    reply.header('content-length', bytes.length)
    done(null, inSlices(bytes, request.reservation))
  }
  app.addHook('onRoute', (route) => {
    // The most frequent routes have empty responses, and skip the hook.
    if (route.config?.hasEmptyResponse) return
    const own = route.onSend === undefined ? [] : [route.onSend].flat()
    route.onSend = [...own, sliceLarge]
  })
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

// Ends the work for a request when its client disconnects.

/** Runs work with a signal that is aborted when the response is over before it: its client has left. */
export async function withDisconnectSignal<T>(
  response: ServerResponse,
  work: (disconnected: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const leave = (): void => controller.abort()
  if (response.destroyed) leave()
  response.once('close', leave)
  try {
    return await work(controller.signal)
  } finally {
    response.off('close', leave)
  }
}
