/** The GATE service as the middleware sees it: its answers, its clock and its keys. */
import {
  fetchGateKeys,
  type GateProject,
  intentPath,
  outcomeOf,
  requestGiveBack,
  requestIntent,
  verifyFor,
} from '../client/gate.ts'
import { type ApiResponse, createHttp } from '../client/http.ts'
import type { SteadyClock } from '../lib/clock.ts'
import type { GateKey, GateReceipt } from '../protocol/gate-receipt.ts'
import { type Proof, prefersPayment, type Visit } from './visit.ts'

/** Longer than the 14 seconds that the service gives a provider. */
const TIMEOUT_MS = 15_000
/** The service's own caching time for its keys. */
const FRESH_MS = 5 * 60_000
/** How long keys stay valid while the service is unreachable. */
const STALE_MS = 24 * 60 * 60_000
/** The shortest time between two fetches for unknown key ids, so that invented ids cost little. */
const MIN_FETCH_EVERY_MS = 10_000

/** A proof that the service must check. */
export type PaymentProof = Exclude<Proof, { kind: 'none' | 'receipt' | 'unreadable' }>

/** The service's answer to a give-back. `unknown` if it could not be reached. */
export type GivenBack = 'recorded' | 'refused' | 'unknown'

export type Service = ReturnType<typeof createService>

export function createService(options: {
  url: string
  project: GateProject
  fetch: typeof globalThis.fetch
  clock: SteadyClock
}) {
  const { clock } = options
  const { projectId, capability } = options.project
  const time = createServiceTime(clock)
  const http = createHttp(options.url, async (input, init) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const answer = await options.fetch(input, { ...init, signal })
    time.hear(answer.headers)
    return answer
  })
  const ring = createKeyRing(() => fetchGateKeys(http), clock.monotonic)

  const poll = (intentId: string, visit: Visit, bound: Record<string, string> = {}) =>
    http.request({
      path: intentPath(intentId),
      token: capability,
      headers: { ...bound, ...visitorHeader(visit) },
    })

  /** If the intent is for another request but was paid, the visitor is not asked to pay again. */
  async function proveByPoll(intentId: string, visit: Visit): Promise<ApiResponse> {
    const bound = { 'x-gate-method': visit.method, 'x-gate-path': visit.path }
    const answer = await poll(intentId, visit, bound)
    if (answer.status !== 401) return answer
    const other = await poll(intentId, visit)
    return other.status === 200 ? other : answer
  }

  /** @param headers authorize: the capability, or the payer's credential. */
  const proveBy = (headers: Record<string, string>, { intentId, preimage }: IntentPreimage) =>
    http.request({
      method: 'POST',
      path: `${intentPath(intentId)}/prove`,
      headers: { 'x-gate-project': projectId, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ preimage }),
    })

  /**
   * Proves by the capability, without naming the request: the receipt names it, and is compared with
   * the visit. So a right preimage with a wrong request gets an error, and not another invoice.
   */
  const proveByPreimage = (proof: IntentPreimage, visit: Visit) =>
    proveBy({ authorization: `Bearer ${capability}`, ...visitorHeader(visit) }, proof)

  return {
    /** The service's clock in unix milliseconds, and how far this server's is ahead of it. */
    now: time.now,
    aheadMs: time.aheadMs,

    /** Asks for the quote of a visit. */
    requestIntent: (visit: Visit): Promise<ApiResponse> =>
      requestIntent(
        http,
        { projectId, capability },
        {
          ...visit,
          headers: {
            // A new key for each visit, so that two visitors never share an invoice.
            'idempotency-key': crypto.randomUUID(),
            ...(prefersPayment(visit) ? { 'x-payment-protocol': 'payment' } : {}),
            ...visitorHeader(visit),
          },
        },
      ),

    /** The service's answer to a proof. `challengeId` is set if the service issued that challenge. */
    async prove(
      proof: PaymentProof,
      visit: Visit,
    ): Promise<{ answer: ApiResponse; challengeId: string | null }> {
      switch (proof.kind) {
        case 'intent':
          return { answer: await proveByPoll(proof.intentId, visit), challengeId: null }
        case 'preimage':
          return { answer: await proveByPreimage(proof, visit), challengeId: null }
        case 'credential': {
          const { line: authorization, challengeId } = proof
          const named = { 'x-gate-method': visit.method, 'x-gate-path': visit.path }
          const answer = await proveBy({ authorization, ...named }, proof)
          if (answer.status === 200) return { answer, challengeId }
          // The service may know the payment but not the challenge, if a secret was removed.
          return { answer: await proveByPreimage(proof, visit), challengeId: null }
        }
      }
    },

    /**
     * The newest receipt of an intent, or null if the service has none.
     * @throws if it cannot tell now: whoever has paid must not read that the receipt is used.
     */
    async newestReceipt(intentId: string, visit: Visit): Promise<string | null> {
      const answer = await poll(intentId, visit)
      if (answer.status === 429 || answer.status >= 500) throw new Error('the service cannot tell')
      if (answer.status !== 200) return null
      const outcome = outcomeOf(answer)
      return outcome.settled ? outcome.receipt : null
    },

    /** Gives a receipt back, because its request failed. */
    async giveBack({ intent: intentId, jti: receiptId }: GateReceipt): Promise<GivenBack> {
      const { status } = await requestGiveBack(http, { capability, intentId, receiptId })
      if (status === 204) return 'recorded'
      return status === 409 ? 'refused' : 'unknown'
    },

    /**
     * The receipt, if it is valid for this request. `isExpired` after its five minutes, by the service's clock.
     * @throws if it may be signed by a key that is newer than those at hand.
     */
    async readReceipt(
      text: string,
      visit: Visit,
    ): Promise<{ receipt: GateReceipt; isExpired: boolean } | null> {
      const cameAt = clock.monotonic()
      const verifyBy = (keys: readonly GateKey[]) =>
        verifyFor(text, keys, { projectId, request: visit, now: time.now() })
      let verdict = await verifyBy(await ring.keys())
      if (verdict.outcome === 'unknown key') verdict = await verifyBy(await ring.keysAfter(cameAt))
      return 'receipt' in verdict
        ? { receipt: verdict.receipt, isExpired: verdict.outcome === 'expired' }
        : null
    },
  }
}

type IntentPreimage = { intentId: string; preimage: string }

/** The network by which the service limits new intents. */
const visitorHeader = ({ network }: Visit): Record<string, string> =>
  network === null ? {} : { 'x-gate-visitor': network }

/**
 * The service's clock: the `Date` of its last answer and the time since. Receipts are dated by it, so this server's
 * own clock may be wrong, or set, at any time. Without a `Date` that clock is all there is.
 */
function createServiceTime({ now, monotonic }: SteadyClock) {
  let heard: { ms: number; at: number } | null = null
  const serviceNow = (): number => (heard ? heard.ms + monotonic() - heard.at : now())
  return {
    now: serviceNow,
    aheadMs: (): number => now() - serviceNow(),
    hear(headers: Headers): void {
      const date = Date.parse(headers.get('date') ?? '')
      // A cache between repeats the service's `Date`, and says how long ago that was (RFC 9111 §5.1).
      const ageMs = Number(headers.get('age') ?? 0) * 1000
      if (Number.isFinite(date + ageMs)) heard = { ms: date + ageMs, at: monotonic() }
    },
  }
}

type Held = { keys: readonly GateKey[]; begunAt: number }

/** Caches the service's keys, so that receipts can be verified without a request. */
export function createKeyRing(
  fetchKeys: () => Promise<readonly GateKey[]>,
  monotonic: () => number,
) {
  let held: Held | null = null
  /** When the last fetch began. */
  let begunAt = Number.NEGATIVE_INFINITY
  let fetching: Promise<Held> | null = null

  async function fetchOnce(): Promise<Held> {
    begunAt = monotonic()
    const fetched = { begunAt, keys: await fetchKeys() }
    held = fetched
    return fetched
  }

  function fetched(): Promise<Held> {
    fetching ??= fetchOnce().finally(() => {
      fetching = null
    })
    return fetching
  }

  const hasJustBegun = (): boolean => monotonic() - begunAt < MIN_FETCH_EVERY_MS
  const isYounger = (than: number): boolean => held !== null && monotonic() - held.begunAt <= than

  return {
    /** The keys, at most five minutes old; while the service is away, at most a day. */
    async keys(): Promise<readonly GateKey[]> {
      const isWanted = held === null || (!isYounger(FRESH_MS) && !hasJustBegun())
      try {
        await (isWanted ? fetched() : fetching)
      } catch (error) {
        if (!isYounger(STALE_MS)) throw error
      }
      if (held === null || !isYounger(STALE_MS)) throw new Error('no keys of the service are known')
      return held.keys
    },

    /**
     * The keys of a fetch that began after a receipt came which names an unknown key.
     * @throws if the last fetch began shortly before, or the service is away: the receipt may be by a new key.
     */
    async keysAfter(cameAt: number): Promise<readonly GateKey[]> {
      if (held !== null && held.begunAt >= cameAt) return held.keys
      if (begunAt < cameAt && hasJustBegun()) throw tooEarly()
      const { keys, begunAt: at } = await fetched()
      if (at < cameAt) throw tooEarly()
      return keys
    },
  }
}

const tooEarly = (): Error => new Error('the keys were fetched before the receipt came')
