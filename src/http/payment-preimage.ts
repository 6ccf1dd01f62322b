/** `Payment-Preimage`: proof of a payment for those who speak no wallet protocol. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { provesPayment } from '../protocol/preimage.ts'
import { type ClientAddress, clientScope } from './client-address.ts'
import { LIMITS, type Limits } from './limits.ts'

/** For the document of a route that takes it. */
export const paymentPreimageHeader = Type.Optional(
  Type.String({
    description:
      '64 hex digits: the preimage that the wallet got for the payment: proves it, so that the capability is handed over whoever else may know the key',
  }),
)

/** Whether a request shows the preimage of this payment, to tell what it is about. */
export function showsPreimageOf(request: FastifyRequest, paymentHash: string | null): boolean {
  const [preimage, ...more] = request.raw.headersDistinct['payment-preimage'] ?? []
  if (preimage === undefined || more.length > 0 || paymentHash === null) return false
  return provesPayment(preimage.trim(), paymentHash)
}

/**
 * The bucket of an order's polls and repeats. Whoever proves the payment draws on another one: a
 * stranger who has guessed the key, or opened the order with it, must not be able to empty it.
 */
export const pollBucket = (orderId: string, isProven: boolean): string =>
  isProven ? `${orderId} proven` : orderId

/**
 * Whether a request came with the preimage of this payment. One that opens nothing draws on the
 * bucket of bad bearers and counts as none.
 * @throws Problem `rate limited` once its client has tried too many.
 */
export async function isProvenBy(
  request: FastifyRequest,
  reply: FastifyReply,
  paymentHash: string,
  { limits, clientAddress }: { limits: Limits; clientAddress: ClientAddress },
): Promise<boolean> {
  if (request.raw.headersDistinct['payment-preimage'] === undefined) return false
  if (showsPreimageOf(request, paymentHash)) return true
  await limits.take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)
  return false
}
