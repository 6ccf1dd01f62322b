/**
 * Rate limits. Each is a bucket of `burst` requests that fills again at `perMinute`; a request that
 * finds it empty is refused before anything is stored, spent or charged.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { type ClientAddress, clientScope } from './client-address.ts'
import { type Problem, problem } from './errors.ts'

export type Rate = { perMinute: number; burst: number }

/** A limit: the name that it has in the configuration, and its default rate. */
export type Limit = Rate & {
  name: string
  /**
   * Where instances share their counts, each decides by its own at once, and tells the others after
   * that. For requests that are a write already: another write before it would halve their number.
   */
  isSharedAsync?: true
}

/** The limits of the service itself; each product brings its own. */
export const LIMITS = {
  /** New orders, by client network. */
  quote: { name: 'quote', perMinute: 10, burst: 10 },
  /** Polls and repeats, by order; polls and proofs, by GATE intent. */
  poll: { name: 'poll', perMinute: 120, burst: 30 },
  /** By client. */
  catalog: { name: 'catalog', perMinute: 120, burst: 120 },
  /** Tokens that open nothing, by client; asked only after one, so a good one never meets it. */
  badBearer: { name: 'badBearer', perMinute: 20, burst: 20 },
  /** Owner requests, by capability. */
  owner: { name: 'owner', perMinute: 120, burst: 120 },
} as const satisfies Record<string, Limit>

/** What is in force. */
export type Rates = {
  /** Every limit that there is; null where it is switched off. */
  limits: readonly { limit: Limit; rate: Rate | null }[]
  /** How many unpaid orders one client network may have open; null for any number. */
  openOrders: number | null
}

/** A longer timer fires at once, and would forget what it counts: 24 days. */
const MAX_WINDOW_SECONDS = 24 * 24 * 60 * 60

/** Unpaid orders that one client network may have open at once. */
export const OPEN_ORDERS = 20

export type Limits = {
  /**
   * Takes one from a bucket and says in the answer's headers what is left
   * (draft-ietf-httpapi-ratelimit-headers).
   * @throws Problem `rate limited` with the seconds to wait.
   */
  take(limit: Limit, key: string, reply: FastifyReply): Promise<void>
  /**
   * What a token that opens nothing gets: `refusal`, or 429 once its client has tried too many. A
   * request without any token tries nothing and is not counted.
   */
  refuse(refusal: Problem, request: FastifyRequest, reply: FastifyReply): Promise<never>
  /** How many unpaid orders a client network may have open, or null. */
  openOrders: number | null
}

export type TakeResult = { msBeforeNext: number; remainingPoints: number; isRefused: boolean }

/** Takes one for a key. */
export type Bucket = (key: string) => Promise<TakeResult>

/** Where a limit keeps what it counts. */
export type OpenBucket = (limit: Limit) => Bucket

export function createLimits(
  rates: Rates,
  clientAddress: ClientAddress,
  openBucket: OpenBucket = openMemoryBucket,
): Limits {
  const buckets = new Map<string, { take: Bucket; policy: string } | null>()
  for (const { limit, rate } of rates.limits) {
    buckets.set(
      limit.name,
      rate && { take: openBucket({ ...limit, ...rate }), policy: policyOf(limit.name, rate) },
    )
  }

  async function take({ name }: Limit, key: string, reply: FastifyReply): Promise<void> {
    const bucket = buckets.get(name)
    // It would limit nothing, and no configuration could change that.
    if (bucket === undefined) throw new Error(`no product brings a limit named ${name}`)
    if (bucket === null) return
    const result = await bucket.take(key)
    const waitSeconds = Math.ceil(result.msBeforeNext / 1000)
    reply.header('ratelimit-policy', bucket.policy)
    reply.header('ratelimit', `"${name}";r=${result.remainingPoints};t=${waitSeconds}`)
    if (result.isRefused) throw rateLimited(waitSeconds)
  }

  return {
    take,
    async refuse(refusal, request, reply) {
      if (request.headers.authorization !== undefined) {
        await take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)
      }
      throw refusal
    },
    openOrders: rates.openOrders,
  }
}

const policyOf = (name: string, rate: Rate): string =>
  `"${name}";q=${rate.burst};w=${Math.ceil(windowSeconds(rate))}`

/** 429 with an integer Retry-After (RFC 9110 §10.2.3), never 0. */
export function rateLimited(waitSeconds: number): Problem {
  return problem('rate limited', { 'retry-after': String(Math.max(1, Math.ceil(waitSeconds))) })
}

/** The library counts in windows: one in which the whole burst fits at this rate. */
export function windowSeconds({ perMinute, burst }: Rate): number {
  return Math.min((burst * 60) / perMinute, MAX_WINDOW_SECONDS)
}

/** Counts in this process alone. */
export const openMemoryBucket: OpenBucket = (limit) => {
  const limiter = new RateLimiterMemory({
    keyPrefix: limit.name,
    points: limit.burst,
    duration: windowSeconds(limit),
  })
  return (key) => resultOf(limiter.consume(key))
}

/** The outcome of taking one: the library rejects where the bucket is empty. */
export async function resultOf(consumed: Promise<RateLimiterRes>): Promise<TakeResult> {
  try {
    const { msBeforeNext, remainingPoints } = await consumed
    return { msBeforeNext, remainingPoints, isRefused: false }
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused
    return { msBeforeNext: refused.msBeforeNext, remainingPoints: 0, isRefused: true }
  }
}
