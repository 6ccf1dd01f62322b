/**
 * Rate limits. Each key has a bucket of `burst` requests, which refills at `perMinute`. If the bucket is
 * empty, a request is refused before anything is stored, spent or charged.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ClientAddress, clientScope } from './client-address.ts'
import { OWNER_TOKEN } from './credentials.ts'
import { Problem } from './errors.ts'

export type Rate = { perMinute: number; burst: number }

/** A limit: the name that it has in the configuration, and its default rate. */
export type Limit = Rate & { name: string }

/** The limits of the service itself. Each product has more. */
export const LIMITS = {
  /** New orders, by client network. A directory that sends HEAD, GET and POST to six addresses sees none refused. */
  quote: { name: 'quote', perMinute: 10, burst: 20 },
  /** New orders from a network of MAYFLY_EGRESS_NETWORKS: many agents have its addresses. */
  quoteEgress: { name: 'quoteEgress', perMinute: 120, burst: 240 },
  /** Polls and repeats, by order; polls and proofs, by GATE intent. */
  poll: { name: 'poll', perMinute: 120, burst: 30 },
  /** By client. */
  catalog: { name: 'catalog', perMinute: 120, burst: 120 },
  /** Requests to `/mcp`, by client: listing tools costs as much as a call. A tool counts as its HTTP request besides. */
  mcp: { name: 'mcp', perMinute: 240, burst: 120 },
  /** The same for messages that say they are too large: throwing one away costs as much as twenty calls. */
  mcpLong: { name: 'mcpLong', perMinute: 20, burst: 10 },
  /** Invalid tokens, by client. Only a request with an invalid token takes from it. */
  badBearer: { name: 'badBearer', perMinute: 20, burst: 20 },
  /** Owner requests, by capability. */
  owner: { name: 'owner', perMinute: 120, burst: 120 },
  /** Tests of alert destinations, by capability: 5 an hour. */
  alertTest: { name: 'alertTest', perMinute: 0.083, burst: 5 },
  /** The same by host and path of the URL that is called, over all capabilities: 10 a day. A stranger's address is no toy. */
  alertTestTarget: { name: 'alertTestTarget', perMinute: 0.007, burst: 10 },
} as const satisfies Record<string, Limit>

/** The limits in force. */
export type Rates = {
  /** Every limit of the service, with null for a limit that is switched off. */
  limits: readonly { limit: Limit; rate: Rate | null }[]
  /** How many unpaid orders one client network may have open; null for any number. */
  openOrders: number | null
}

/** Unpaid orders that one client network may have open at once. */
export const OPEN_ORDERS = 20
/** A network of MAYFLY_EGRESS_NETWORKS may have this many times as many. */
export const EGRESS_OPEN_ORDERS = 12

export type Limits = ReturnType<typeof createLimits>

/** What is left to a key after a request. */
export type Taken = { remaining: number; msLeft: number; isRefused: boolean }

/** Takes one request from the bucket of a key. */
export type Bucket = (key: string) => Taken

/** Opens the buckets of a limit. */
export type OpenBucket = (limit: Limit) => Bucket

export function createLimits(
  rates: Rates,
  clientAddress: ClientAddress,
  openBucket: OpenBucket = openMemoryBucket,
) {
  const buckets = new Map<string, OpenedBucket | null>()
  let { openOrders } = rates
  reload(rates)

  /** Takes other rates into use. A limit whose rate stays keeps its counts. @returns those that differ. */
  function reload(next: Rates): string[] {
    const changed: string[] = next.openOrders === openOrders ? [] : ['openOrders']
    openOrders = next.openOrders
    for (const { limit, rate } of next.limits) {
      const before = buckets.get(limit.name)
      if (before !== undefined && isSameRate(before, rate)) continue
      buckets.set(
        limit.name,
        rate && {
          take: openBucket({ ...limit, ...rate }),
          policy: policyOf(limit.name, rate),
          rate,
        },
      )
      changed.push(limit.name)
    }
    return changed
  }

  function bucketOf({ name }: Limit): OpenedBucket | null {
    const bucket = buckets.get(name)
    // A limit that is missing in `rates` would limit nothing, and could not be configured.
    if (bucket === undefined) throw new Error(`no product brings a limit named ${name}`)
    return bucket
  }

  /**
   * Takes one request from a bucket, and writes what is left into the answer's headers
   * (draft-ietf-httpapi-ratelimit-headers).
   * @throws Problem `rate limited` with the seconds to wait.
   */
  async function take(limit: Limit, key: string, reply: FastifyReply): Promise<void> {
    const { name } = limit
    const bucket = bucketOf(limit)
    if (bucket === null) return
    const { remaining, msLeft, isRefused } = bucket.take(key)
    const waitSeconds = Math.ceil(msLeft / 1000)
    reply.header('ratelimit-policy', bucket.policy)
    reply.header('ratelimit', `"${name}";r=${remaining};t=${waitSeconds}`)
    if (isRefused) throw rateLimited(waitSeconds, name)
  }

  return {
    take,
    /** Takes one for work that has no answer of its own. Returns false if the bucket is empty. */
    async admits(limit: Limit, key: string): Promise<boolean> {
      return !bucketOf(limit)?.take(key).isRefused
    },
    /**
     * Refuses a request whose token is invalid: throws `refusal`, or 429 if the client has tried too many
     * tokens. A request without a token is not counted.
     */
    async refuse(refusal: Problem, request: FastifyRequest, reply: FastifyReply): Promise<never> {
      const { authorization, [OWNER_TOKEN]: ownerToken } = request.headers
      if (authorization !== undefined || ownerToken !== undefined) {
        await take(LIMITS.badBearer, clientScope(clientAddress(request.raw)), reply)
      }
      throw refusal
    },
    /** How many unpaid orders a client network may have open, or null. A reload can change it. */
    get openOrders(): number | null {
      return openOrders
    },
    reload,
  }
}

type OpenedBucket = { take: Bucket; policy: string; rate: Rate }

const isSameRate = (before: OpenedBucket | null, rate: Rate | null): boolean =>
  before === null || rate === null
    ? before === rate
    : before.rate.perMinute === rate.perMinute && before.rate.burst === rate.burst

const policyOf = (name: string, rate: Rate): string =>
  `"${name}";q=${rate.burst};w=${Math.ceil(windowSeconds(rate))}`

/** 429 with an integer Retry-After (RFC 9110 §10.2.3), never 0. @param limit its name, if it is one that has a name. */
export function rateLimited(waitSeconds: number, limit?: string): Problem {
  const seconds = Math.max(1, Math.ceil(waitSeconds))
  return new Problem('rate limited', { 'retry-after': String(seconds) }, {}, limit)
}

/** Counts in this process only. */
export const openMemoryBucket: OpenBucket = (limit) => createWindows(limit).take

/** The requests of each key, in a window that begins with the first of them: the time in which the burst refills. */
export function createWindows(rate: Rate) {
  /** Those that were begun first stand first, and end first. */
  const windows = new Map<string, { used: number; endsAt: number }>()

  function begin(key: string, used: number, endsAt: number) {
    const window = { used, endsAt }
    windows.delete(key)
    windows.set(key, window)
    return window
  }

  return {
    take(key: string): Taken {
      const now = nowMs()
      for (const [old, { endsAt }] of windows) {
        if (endsAt > now) break
        windows.delete(old)
      }
      const known = windows.get(key)
      const isOver = known === undefined || known.endsAt <= now
      const window = isOver ? begin(key, 0, now + Math.ceil(windowSeconds(rate) * 1000)) : known
      window.used++
      return {
        remaining: Math.max(0, rate.burst - window.used),
        msLeft: window.endsAt - now,
        isRefused: window.used > rate.burst,
      }
    },
    /** Takes over what all instances have counted. */
    learn(key: string, used: number, msLeft: number): void {
      begin(key, used, nowMs() + msLeft)
    },
  }
}

/** Whole, so that a sum of times says no second too much. */
const nowMs = (): number => Math.floor(performance.now())

const windowSeconds = ({ perMinute, burst }: Rate): number => (burst * 60) / perMinute
