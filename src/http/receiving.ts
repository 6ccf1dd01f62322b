/**
 * Receives the body of a purchase. What may come for nothing asks its limit before its bytes are
 * read, and is in no room with what has been paid for: those who fill one keep nobody out of another.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { declaredBytes, type MinimumRate, readBody } from './body.ts'
import { type BodyBudget, createBodyBudget } from './body-budget.ts'
import { checkoutUnavailable, type Phrase } from './errors.ts'
import { LIMITS, type Limit, rateLimited } from './limits.ts'
import { pollBucket } from './payment-preimage.ts'

const MIB = 1024 * 1024

/**
 * `fresh` is for bodies of orders that are not there yet, `keyed` for those of an order that a key
 * names, paid or not, and `proven` for those that come with the proof of a payment.
 */
export type PurchaseRooms = Record<'fresh' | 'keyed' | 'proven', BodyBudget>

/** Several of the largest bodies at once in each, and together less than a small machine has. */
export const createPurchaseRooms = (): PurchaseRooms => ({
  fresh: createBodyBudget({ perNetwork: 32 * MIB, perTarget: 64 * MIB, inAll: 64 * MIB }),
  keyed: createBodyBudget({ perNetwork: 16 * MIB, perTarget: 32 * MIB, inAll: 32 * MIB }),
  proven: createBodyBudget({ perNetwork: 16 * MIB, perTarget: 32 * MIB, inAll: 32 * MIB }),
})

/** What each room holds now, for the metrics. */
export const bytesIn = (rooms: PurchaseRooms): Record<string, number> =>
  Object.fromEntries(Object.entries(rooms).map(([name, room]) => [name, room.held().bytes]))

/** As much as the headers of a request may take anyway: the JSON of a purchase is in no room. */
const SMALL_BODY_BYTES = 16 * 1024
/**
 * Slower than any line that gets 64 KiB through within the server's 30 seconds, and long enough for
 * one that is cut for a moment.
 */
const MINIMUM_RATE: MinimumRate = { everyMs: 10_000, bytes: 8 * 1024 }
/** Whoever found no room is told to come back after this: bodies arrive or end within it. */
const RETRY_SECONDS = 10

/** Takes one from a limit; from the same bucket once in a request, whoever asks. */
export type Take = (limit: Limit, key: string) => Promise<void>

/** What the headers of a purchase say of its order. */
export type Expected = { orderId: string | null; isProven: boolean; maxBodyBytes: number }

export type Receiving = {
  rooms: PurchaseRooms
  clientNetwork: string
  /** Of what is on sale. */
  maxBodyBytes: number
  /** Whether an order may have been sold with another limit than what is on sale now. */
  hasOwnLimit: boolean
  tooLarge?: Phrase
  /** Asked where the body is in a room. */
  expected: () => Promise<Expected>
  isSelling: () => boolean
  take: Take
}

/** The body of a purchase. @throws Problem from the catalogue. */
export async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  {
    rooms,
    clientNetwork,
    maxBodyBytes,
    hasOwnLimit,
    tooLarge,
    expected,
    isSelling,
    take,
  }: Receiving,
): Promise<Buffer> {
  const options = tooLarge ? { tooLarge } : {}
  if (maxBodyBytes <= SMALL_BODY_BYTES && !hasOwnLimit) {
    return readBody(request, maxBodyBytes, options)
  }
  const { orderId, isProven, maxBodyBytes: limit } = await expected()
  // Refused for itself before it takes anything from the limits.
  if ((declaredBytes(request) ?? 0) > limit) return readBody(request, limit, options)
  if (orderId !== null) {
    await take(LIMITS.poll, pollBucket(orderId, isProven))
  } else if (!isProven) {
    // Who waits for the node as told must not run out of tries meanwhile.
    if (!isSelling()) throw checkoutUnavailable()
    await take(LIMITS.quote, clientNetwork)
  }
  const kept = orderId === null ? 'fresh' : 'keyed'
  const room = rooms[isProven ? 'proven' : kept]
  const reservation = room.admit({ network: clientNetwork, target: '' })
  if (!reservation) throw rateLimited(RETRY_SECONDS)
  // Also when the peer goes away before there is an answer.
  response.once('close', reservation.release)
  try {
    const body = await readBody(request, limit, {
      reserve: reservation.reserve,
      evicted: reservation.evicted,
      minimumRate: MINIMUM_RATE,
      ...options,
    })
    reservation.received()
    return body
  } catch (error) {
    // It may have closed before we listened, while its order was looked for.
    reservation.release()
    throw error
  }
}
