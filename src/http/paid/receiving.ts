/**
 * Receives the body of a purchase. A body that costs its sender nothing takes from its limit before its
 * bytes are read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { declaredBytes, type MinimumRate, readBody } from '../body.ts'
import { checkoutUnavailable, type Phrase } from '../errors.ts'
import { LIMITS, type Limit, rateLimited } from '../limits.ts'
import type { Memory } from '../memory.ts'
import { pollBucket } from './repeats.ts'

/** A body up to this size needs no memory budget: the headers of a request may be as large. */
const SMALL_BODY_BYTES = 16 * 1024
/**
 * Any connection that can send 64 KiB within the server's 30 seconds is faster, even with a short
 * interruption.
 */
const MINIMUM_RATE: MinimumRate = { everyMs: 10_000, bytes: 8 * 1024 }
/** Retry-After when a budget is full: other bodies have arrived or ended by then. */
const RETRY_SECONDS = 10

/** Takes one request from a limit, but only once per request and bucket. */
export type Take = (limit: Limit, key: string) => Promise<void>

/** What the headers of a purchase say about its order. */
export type Expected = { orderId: string | null; isProven: boolean; maxBodyBytes: number }

export type Receiving = {
  memory: Memory
  clientNetwork: string
  /** The largest body under the plans on sale. */
  maxBodyBytes: number
  /** Whether an order may have been sold with another limit than that of the plans on sale. */
  hasOwnLimit: boolean
  tooLarge?: Phrase
  /** Called if the body needs a memory budget. */
  expected: () => Promise<Expected>
  isSelling: () => boolean
  /** The rules of the operator on new orders. @throws Problem if this client may not open one now. */
  admit: () => Promise<void>
  /** The limit on new orders that counts for this client. */
  quote: Limit
  take: Take
}

/** The body of a purchase. @throws Problem from the catalogue. */
export async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  {
    memory,
    clientNetwork,
    maxBodyBytes,
    hasOwnLimit,
    tooLarge,
    expected,
    isSelling,
    admit,
    quote,
    take,
  }: Receiving,
): Promise<Buffer> {
  const options = tooLarge ? { tooLarge } : {}
  if (maxBodyBytes <= SMALL_BODY_BYTES && !hasOwnLimit) {
    return readBody(request, maxBodyBytes, options)
  }
  const { orderId, isProven, maxBodyBytes: limit } = await expected()
  // A body that is refused for its size takes nothing from the limits.
  if ((declaredBytes(request) ?? 0) > limit) return readBody(request, limit, options)
  if (orderId !== null) {
    await take(LIMITS.poll, pollBucket(orderId, isProven))
  } else if (!isProven) {
    // A client that retries until the node is back must not use up its limit meanwhile.
    if (!isSelling()) throw checkoutUnavailable()
    await admit()
    await take(quote, clientNetwork)
  }
  const reservation = memory.forBody(isProven ? 'paid' : 'unpaid', { network: clientNetwork })
  if (!reservation) throw rateLimited(RETRY_SECONDS)
  // The peer may go away before there is an answer.
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
    // The connection may have closed while the order was looked up, before the listener was added.
    reservation.release()
    throw error
  }
}
