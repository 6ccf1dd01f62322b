/**
 * Rate limits. Each is a bucket of `burst` requests that fills again at `perMinute`; a request that
 * finds it empty is refused before anything is stored, spent or charged.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { type ClientAddress, clientScope } from './client-address.ts'
import { type Problem, problem } from './errors.ts'

export type Rate = { perMinute: number; burst: number }

/** The limits by the names of the configuration, with their defaults and what they count by. */
export const RATES = {
  /** New orders, by client network. */
  quote: { perMinute: 10, burst: 10 },
  /** Polls and repeats, by order; polls and proofs, by GATE intent. */
  poll: { perMinute: 120, burst: 30 },
  /** By client. */
  catalog: { perMinute: 120, burst: 120 },
  /** Tokens that open nothing, by client; asked only after one, so a good one never meets it. */
  badBearer: { perMinute: 20, burst: 20 },
  /** Owner requests, by capability. */
  owner: { perMinute: 120, burst: 120 },
  /** Requests into an inbox, by its plan. */
  'ingest.spark': { perMinute: 600, burst: 50 },
  'ingest.standard': { perMinute: 1_200, burst: 100 },
  'ingest.long': { perMinute: 3_000, burst: 250 },
  /** Reads of a WHISPER, by its id. */
  read: { perMinute: 30, burst: 30 },
  /** Pings, by monitor. */
  ping: { perMinute: 12, burst: 5 },
  /** Public status, by client. */
  publicStatus: { perMinute: 60, burst: 60 },
  /** New GATE intents, by project, where it does not say for which visitor. */
  gate: { perMinute: 120, burst: 120 },
  /** New GATE intents, by project and network of the visitor. */
  gateVisitor: { perMinute: 60, burst: 60 },
} as const satisfies Record<string, Rate>

export type LimitName = keyof typeof RATES

/** What is in force; a name left out is not limited. `openOrders` is a count, not a rate. */
export type Rates = Partial<Record<LimitName, Rate>> & { openOrders?: number }

/** A longer timer fires at once, and would forget what it counts: 24 days. */
const MAX_WINDOW_SECONDS = 24 * 24 * 60 * 60

/** Unpaid orders that one client network may have open at once. */
const OPEN_ORDERS = 20

/** Everything at its default. */
export const DEFAULT_RATES: Rates = { ...RATES, openOrders: OPEN_ORDERS }

export type Limits = {
  /**
   * Takes one from a bucket and says in the answer's headers what is left
   * (draft-ietf-httpapi-ratelimit-headers).
   * @throws Problem `rate limited` with the seconds to wait.
   */
  take(name: LimitName, key: string, reply: FastifyReply): Promise<void>
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
export type OpenBucket = (name: LimitName, rate: Rate) => Bucket

export function createLimits(
  rates: Rates,
  clientAddress: ClientAddress,
  openBucket: OpenBucket = openMemoryBucket,
): Limits {
  const buckets = new Map<LimitName, { take: Bucket; policy: string }>()
  for (const name of Object.keys(RATES) as LimitName[]) {
    const rate = rates[name]
    if (!rate) continue
    const policy = `"${name}";q=${rate.burst};w=${Math.ceil(windowSeconds(rate))}`
    buckets.set(name, { take: openBucket(name, rate), policy })
  }

  async function take(name: LimitName, key: string, reply: FastifyReply): Promise<void> {
    const bucket = buckets.get(name)
    if (!bucket) return
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
        await take('badBearer', clientScope(clientAddress(request.raw)), reply)
      }
      throw refusal
    },
    openOrders: rates.openOrders ?? null,
  }
}

/** 429 with an integer Retry-After (RFC 9110 §10.2.3), never 0. */
export function rateLimited(waitSeconds: number): Problem {
  return problem('rate limited', { 'retry-after': String(Math.max(1, Math.ceil(waitSeconds))) })
}

/** The library counts in windows: one in which the whole burst fits at this rate. */
export function windowSeconds({ perMinute, burst }: Rate): number {
  return Math.min((burst * 60) / perMinute, MAX_WINDOW_SECONDS)
}

/** Counts in this process alone. */
export const openMemoryBucket: OpenBucket = (name, rate) => {
  const limiter = new RateLimiterMemory({
    keyPrefix: name,
    points: rate.burst,
    duration: windowSeconds(rate),
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
