/**
 * Decides about one visit to a paid route: ask for payment, or admit it. A failure refuses the visit,
 * but never asks a visitor who has paid to pay again.
 */
import { type GateProject, outcomeOf } from '../client/gate.ts'
import { type ApiResponse, errorOf } from '../client/http.ts'
import { type SteadyClock, systemClock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { createAdmissions, SKEW_MS } from './admissions.ts'
import { memoryStore, type ReplayStore } from './replay-store.ts'
import { createService } from './service.ts'
import {
  type Decision,
  type Refused,
  readProof,
  refusal,
  relay,
  unavailable,
  unreadableProof,
  type Visit,
} from './visit.ts'

export type GateOptions = GateProject & {
  /** The address of the GATE service. */
  url: string
  /** Remembers the used receipts. Default: in the memory of this process. */
  store?: ReplayStore
  /**
   * The IP address of a visitor, if the connection does not have it: behind a proxy, and for
   * fetch-style handlers. Only its network is sent to the service.
   */
  visitorAddress?: (request: object) => string | null
  /** Is told, once a minute at most, why visitors get 503. Default: `console.error`. */
  onProblem?: (sentence: string) => void
  fetch?: typeof globalThis.fetch
  clock?: SteadyClock
}

const TELL_EVERY_MS = 60_000

export function createGatekeeper(options: GateOptions) {
  const { url, clock = systemClock } = options
  const store = options.store ?? memoryStore(clock.now)
  const service = createService({
    url,
    clock,
    project: options,
    fetch: (...request) => (options.fetch ?? globalThis.fetch)(...request),
  })
  const admissions = createAdmissions({ service, store, clock })
  // biome-ignore lint/suspicious/noConsole: this runs in a project's own server.
  const onProblem = options.onProblem ?? ((sentence: string) => console.error(sentence))
  let toldAt = Number.NEGATIVE_INFINITY

  // Starts the store's time now, before the first payment, so that it covers that one too.
  void (async () => store.since?.())().catch(() => {})

  function tell(why: string): void {
    if (clock.monotonic() - toldAt < TELL_EVERY_MS) return
    toldAt = clock.monotonic()
    onProblem(`mayfly/gate: ${why}.`)
  }

  async function requestPayment(visit: Visit): Promise<Decision> {
    // A store that fails would let nobody in who has paid.
    await store.since?.()
    const answer = await service.requestIntent(visit)
    if (answer.status === 402) return hasRightTime() ? relay(answer) : unavailable(null)
    // Servers could read the path differently, or the route is not registered.
    if (answer.status === 400) return refusal(400, 'invalid binding')
    return refusedByService(answer)
  }

  function refusedByService(answer: ApiResponse): Refused {
    // The limit of a visitor is no problem of this server.
    if (answer.status !== 429) {
      tell(`${url} answers ${answer.status}, ${errorOf(answer).phrase}. Visitors get 503`)
    }
    return unavailable(answer)
  }

  /** The store keeps what was let in by this server's clock, so with a wrong one nobody is asked to pay. */
  function hasRightTime(): boolean {
    const aheadMs = service.aheadMs()
    if (Math.abs(aheadMs) <= SKEW_MS) return true
    const by = `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`
    tell(
      `the clock of this server is ${by} that of ${new URL(url).host}. ` +
        'No visitor is asked to pay until one of them is set right',
    )
    return false
  }

  async function judge(visit: Visit): Promise<Decision> {
    const proof = readProof(visit)
    if (proof.kind === 'none') return requestPayment(visit)
    if (proof.kind === 'unreadable') return unreadableProof()
    if (proof.kind === 'receipt') return admissions.enter(proof.receipt, visit, null)
    const { answer, challengeId } = await service.prove(proof, visit)
    if (answer.status === 200) {
      const outcome = outcomeOf(answer)
      if (!outcome.settled) return refusedByService(answer)
      return admissions.enter(outcome.receipt, visit, challengeId)
    }
    if (answer.status === 402) return relay(answer)
    const { phrase } = errorOf(answer)
    if (answer.status === 401 && phrase === 'intent mismatch') {
      // A preimage was paid for, perhaps by who paid before the service was restored from a backup.
      return proof.kind === 'intent' ? requestPayment(visit) : refusal(403, phrase)
    }
    if (answer.status === 401 && phrase === 'wrong preimage') return refusal(403, phrase)
    return refusedByService(answer)
  }

  return {
    async decide(visit: Visit): Promise<Decision> {
      try {
        return await judge(visit)
      } catch (error) {
        tell(`${messageOf(error)}. Visitors get 503`)
        return unavailable(null)
      }
    },
  }
}
