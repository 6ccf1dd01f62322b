/** `Payment-Preimage`: proof of payment for clients without a wallet protocol. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { paymentHashOf, provesPayment } from '../protocol/preimage.ts'
import { type ClientAddress, clientScope } from './client-address.ts'
import { LIMITS, type Limits } from './limits.ts'
import { Type } from './type.ts'

/** The header in the OpenAPI document of a route that reads it. */
export const paymentPreimageHeader = Type.Optional(
  Type.String({
    description:
      '64 hex digits: the preimage that the wallet got for the payment: proves it, so that the capability is handed over whoever else may know the key',
    examples: ['7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069'],
  }),
)

/** Whether a request shows the preimage of this payment. Counts against no limit. */
export function showsPreimageOf(request: FastifyRequest, paymentHash: string | null): boolean {
  const [preimage, ...more] = request.raw.headersDistinct['payment-preimage'] ?? []
  if (preimage === undefined || more.length > 0 || paymentHash === null) return false
  return provesPayment(preimage.trim(), paymentHash)
}

/** The payment hash that the preimage of a request opens, or null if it came without one. */
export function paymentHashShown(request: FastifyRequest): string | null {
  const [preimage = '', ...more] = request.raw.headersDistinct['payment-preimage'] ?? []
  return more.length > 0 ? null : paymentHashOf(preimage.trim())
}

/**
 * The bucket of an order's polls and repeats. A client that proves the payment has a bucket of its own: a
 * stranger who has guessed the key, or has opened the order with it, must not be able to empty that one.
 */
export const pollBucket = (orderId: string, isProven: boolean): string =>
  isProven ? `${orderId} proven` : orderId

/**
 * Whether a request came with the preimage of this payment. A wrong preimage proves nothing and counts
 * against the limit of wrong bearer tokens.
 * @throws Problem `rate limited` once its client has tried too many.
 */
export async function isProvenBy(
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  paymentHash: string,
  { limits, clientAddress }: { limits: Limits; clientAddress: ClientAddress },
): Promise<boolean> {
  if (request.raw.headersDistinct['payment-preimage'] === undefined) return false
  if (showsPreimageOf(request, paymentHash)) return true
  await limits.take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)
  return false
}
