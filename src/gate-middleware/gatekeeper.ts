/**
 * Decides about one visit to a paid route: ask for payment, or admit it. A failure refuses the visit,
 * but never asks a visitor who has paid to pay again.
 */
import { type GateProject, outcomeOf } from '../client/gate.ts'
import { createHttp, errorOf } from '../client/http.ts'
import { createAdmissions } from './admissions.ts'
import { readProof } from './proof.ts'
import { createReceiptReader } from './receipt-reader.ts'
import { refusal, relay, unavailable } from './refusals.ts'
import { memoryStore, type ReplayStore } from './replay-store.ts'
import { createServiceCalls } from './service-calls.ts'
import type { Decision, Visit } from './visit.ts'

export type GateOptions = GateProject & {
  /** The address of the GATE service. */
  url: string
  /** The issuer that receipts must name. Default: any, if the service's keys signed them. */
  issuer?: string
  /** Remembers the used receipts. Default: in the memory of this process. */
  store?: ReplayStore
  /** Repeats small answers to payers whose connection was lost. Default: false. */
  storedAnswers?: boolean
  /** How long a repeat waits for the first run of its request, in milliseconds. Default: 10 000. */
  waitMs?: number
  /**
   * The IP address of a visitor, if the connection does not have it: behind a proxy, and for
   * fetch-style handlers. Only its network is sent to the service.
   */
  visitorAddress?: (request: object) => string | null
  fetch?: typeof globalThis.fetch
  /** Unix milliseconds. */
  now?: () => number
}

export type Gatekeeper = { decide(visit: Visit): Promise<Decision> }

/** Longer than the 10 seconds that the service gives a provider. */
const TIMEOUT_MS = 15_000
const WAIT_MS = 10_000

export function createGatekeeper(options: GateOptions): Gatekeeper {
  const { projectId, url, now = Date.now, waitMs = WAIT_MS } = options
  const issuer = options.issuer?.replace(/\/+$/, '') ?? null
  const store = options.store ?? memoryStore(now)
  const fetch: typeof globalThis.fetch = (input, init) =>
    (options.fetch ?? globalThis.fetch)(input, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const http = createHttp(url, fetch)
  const service = createServiceCalls(http, options)
  const readReceipt = createReceiptReader({ http, projectId, issuer, now })
  const storesAnswers = options.storedAnswers ?? false
  const admissions = createAdmissions({ service, readReceipt, store, storesAnswers, waitMs, now })

  // Starts the store's time now, before the first payment, so that it covers that one too.
  void (async () => store.since?.())().catch(() => {})

  async function requestPayment(visit: Visit): Promise<Decision> {
    const answer = await service.requestIntent(visit)
    if (answer.status === 402) return relay(answer)
    // Servers could read the path differently, or the route is not registered.
    if (answer.status === 400) return refusal(400, 'invalid binding')
    return unavailable(answer)
  }

  async function judge(visit: Visit): Promise<Decision> {
    const proof = readProof(visit)
    if (proof.kind === 'none' || proof.kind === 'unreadable') return requestPayment(visit)
    if (proof.kind === 'receipt') return admissions.enter(proof.receipt, visit, null)
    const { answer, challengeId } = await service.prove(proof, visit)
    if (answer.status === 200) {
      const outcome = outcomeOf(answer)
      if (!outcome.settled) return unavailable(answer)
      return admissions.enter(outcome.receipt, visit, challengeId)
    }
    if (answer.status === 402) return relay(answer)
    const { phrase } = errorOf(answer)
    // The proof is for an unknown intent or another project's, so this request must be paid.
    if (answer.status === 401 && phrase === 'intent mismatch') return requestPayment(visit)
    if (answer.status === 401 && phrase === 'wrong preimage') return refusal(403, phrase)
    return unavailable(answer)
  }

  return {
    async decide(visit) {
      try {
        return await judge(visit)
      } catch {
        return unavailable(null)
      }
    },
  }
}
