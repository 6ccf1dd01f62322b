/** `Payment-Preimage`: proof of payment for clients without a wallet protocol. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type ClientAddress, clientScope } from '../client-address.ts'
import { LIMITS, type Limit, type Limits } from '../limits.ts'

/** The header in the OpenAPI document of a route that reads it. */
export const paymentPreimageHeader = Type.Optional(
  Type.String({
    description:
      '64 hex digits: the preimage that the wallet got for the payment. Together with the key of the order it proves the payment',
    examples: ['7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069'],
  }),
)

/** What stands in `Payment-Preimage`: null without it, and nothing readable in several lines. */
export function preimageIn(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['payment-preimage']
  if (lines === undefined) return null
  return lines.length === 1 ? (lines[0] ?? '').trim() : ''
}

/**
 * The bucket of an order's polls and repeats. A client that proves the payment has a bucket of its own: a
 * stranger who has guessed the key, or has opened the order with it, must not be able to empty that one.
 */
export const pollBucket = (orderId: string, isProven: boolean): string =>
  isProven ? `${orderId} proven` : orderId

/**
 * Counts a repeat or a poll of an order. A wrong preimage proves nothing, and counts like a wrong bearer token.
 * @throws Problem `rate limited`.
 */
export async function takeRepeat(
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  shown: { orderId: string; isProven: boolean; hasWrongPreimage: boolean },
  {
    limits,
    clientAddress,
    take = (limit, bucket) => limits.take(limit, bucket, reply),
  }: {
    limits: Limits
    clientAddress: ClientAddress
    take?: (limit: Limit, bucket: string) => Promise<void>
  },
): Promise<void> {
  if (shown.hasWrongPreimage) {
    await limits.take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)
  }
  await take(LIMITS.poll, pollBucket(shown.orderId, shown.isProven))
}
