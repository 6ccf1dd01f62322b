/** Bodies that a purchase is bound to must arrive as they were sent. */
import type { FastifyRequest } from 'fastify'
import { problem } from './errors.ts'

/** Refuses encoded bodies: clients and proxies encode and decode, which changes the bytes of the request. */
export function refuseEncoding(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw problem('unsupported media type')
  }
}
