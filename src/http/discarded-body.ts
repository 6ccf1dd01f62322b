/** Answers requests whose body has no meaning, such as that of a DELETE: it is drained or cut off. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Up to this length, the body is drained and the connection stays open. With a longer body it closes. */
const DRAIN_BYTES = 64 * 1024
/** A long body is still read for this time after the answer, because a reset could destroy the answer. */
const LINGER_MS = 1_000

/** Whether the body is too long to drain, or is chunked and may become too long. */
export function exceedsDrainLimit(request: IncomingMessage): boolean {
  const declared = request.headers['content-length']
  if (declared !== undefined) return Number(declared) > DRAIN_BYTES
  return !request.complete || request.readableLength > DRAIN_BYTES
}

/** Sends 204 at once, however much of the body has arrived. */
export function sendNoContent(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Node itself drains a short body.
  if (!exceedsDrainLimit(request.raw)) return reply.code(204).send()
  reply.hijack()
  const { raw: response } = reply
  response.statusCode = 204
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) response.setHeader(name, value)
  }
  response.setHeader('connection', 'close')
  response.flushHeaders()
  // The end of the response is the end of the connection.
  const timer = setTimeout(end, LINGER_MS)
  request.raw.once('end', end).once('close', end).resume()
  function end(): void {
    clearTimeout(timer)
    response.end()
  }
  return reply
}
