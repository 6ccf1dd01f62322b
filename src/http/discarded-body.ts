/** Answers to requests whose body means nothing: nobody waits for it, and nobody keeps it. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** So much of an ignored body is read for the sake of its connection; past that it closes. */
const DRAIN_BYTES = 64 * 1024
/** Once answered, a long body is still taken off the wire for so long: a reset would take our answer along. */
const LINGER_MS = 1_000

/** Whether the body is longer than that, or a chunked one that may yet become so. */
export function exceedsDrainLimit(request: IncomingMessage): boolean {
  const declared = request.headers['content-length']
  if (declared !== undefined) return Number(declared) > DRAIN_BYTES
  return !request.complete || request.readableLength > DRAIN_BYTES
}

/** 204 at once, however much of the body has come. */
export function sendNoContent(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A short rest is read and dropped by Node.
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
