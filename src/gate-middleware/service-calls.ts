/** The middleware's calls to the GATE service. */
import {
  type GateProject,
  intentPath,
  outcomeOf,
  requestGiveBack,
  requestIntent,
} from '../client/gate.ts'
import type { ApiResponse, Http } from '../client/http.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import { type Proof, prefersPayment } from './proof.ts'
import type { GivenBack } from './runs.ts'
import type { Visit } from './visit.ts'

/** A proof that the service must check. */
export type PaymentProof = Exclude<Proof, { kind: 'none' | 'receipt' | 'unreadable' }>

export type ServiceCalls = {
  /** Asks for the quote of a visit. */
  requestIntent(visit: Visit): Promise<ApiResponse>
  /** The service's answer to a proof. `challengeId` is set if the service issued that challenge. */
  prove(
    proof: PaymentProof,
    visit: Visit,
  ): Promise<{ answer: ApiResponse; challengeId: string | null }>
  /** The newest receipt of an intent, or null if the service has none. */
  newestReceipt(intentId: string, visit: Visit): Promise<string | null>
  /** Records that the request of this receipt failed. */
  giveBack(receipt: GateReceipt): Promise<GivenBack>
}

export function createServiceCalls(
  http: Http,
  { projectId, capability }: GateProject,
): ServiceCalls {
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

  /**
   * Proves by the capability, without naming the request: the receipt names it, and is compared with
   * the visit. So a right preimage with a wrong request gets an error, and not another invoice.
   */
  const proveByPreimage = ({ intentId, preimage }: IntentPreimage, visit: Visit) =>
    http.request({
      method: 'POST',
      path: `${intentPath(intentId)}/prove`,
      token: capability,
      headers: {
        'x-gate-project': projectId,
        'content-type': 'application/json',
        ...visitorHeader(visit),
      },
      body: JSON.stringify({ preimage }),
    })

  /** Proves by the payer's credential. The service checks that it issued the challenge. */
  const proveByCredential = (
    { intentId, preimage, line }: IntentPreimage & { line: string },
    visit: Visit,
  ) =>
    http.request({
      method: 'POST',
      path: `${intentPath(intentId)}/prove`,
      headers: {
        'x-gate-project': projectId,
        'x-gate-method': visit.method,
        'x-gate-path': visit.path,
        'content-type': 'application/json',
        authorization: line,
      },
      body: JSON.stringify({ preimage }),
    })

  return {
    requestIntent: (visit) =>
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

    async prove(proof, visit) {
      switch (proof.kind) {
        case 'intent':
          return { answer: await proveByPoll(proof.intentId, visit), challengeId: null }
        case 'preimage':
          return { answer: await proveByPreimage(proof, visit), challengeId: null }
        case 'credential': {
          const answer = await proveByCredential(proof, visit)
          if (answer.status === 200) return { answer, challengeId: proof.challengeId }
          // The service may know the payment but not the challenge, if a secret was removed.
          return { answer: await proveByPreimage(proof, visit), challengeId: null }
        }
      }
    },

    async newestReceipt(intentId, visit) {
      const answer = await poll(intentId, visit)
      if (answer.status !== 200) return null
      const outcome = outcomeOf(answer)
      return outcome.settled ? outcome.receipt : null
    },

    async giveBack({ intent: intentId, jti: receiptId }) {
      const { status } = await requestGiveBack(http, { capability, intentId, receiptId })
      if (status === 204) return 'recorded'
      return status === 409 ? 'refused' : 'unknown'
    },
  }
}

type IntentPreimage = { intentId: string; preimage: string }

/** The network by which the service limits new intents. */
const visitorHeader = ({ network }: Visit): Record<string, string> =>
  network === null ? {} : { 'x-gate-visitor': network }
