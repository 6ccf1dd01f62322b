import type { TestContext } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate, type FetchHandler, type Gate } from '../../src/gate-middleware/middleware.ts'
import { decodeChargeRequest } from '../../src/protocol/payment-auth.ts'
import { register } from '../support/gate.ts'
import { paymentAuthorization, paymentChallengeIn } from '../support/payer.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

export const URL_OF_CAT = 'https://api.example.com/render/cat?size=2'

export type Visit = { method?: string; url?: string; body?: string }

export function aVisit(headers: Record<string, string> = {}, ask: Visit = {}): Request {
  const { method = 'POST', url = URL_OF_CAT, body = 'the body' } = ask
  return new Request(url, { method, headers, body })
}

export const proofOf = ({ intentId }: GateQuote, preimage: string): Record<string, string> => ({
  'x-gate-intent': intentId,
  'x-gate-preimage': preimage,
})

/** A GATE with a project, and the project's API with one route. Both have the same clock. */
export async function aShop(
  t: TestContext,
  environment: Record<string, string> = {},
  project = {},
) {
  environment.MAYFLY_GATE = 'on'
  // Otherwise the signed texts would contain the port, which changes with a restart.
  environment.MAYFLY_BASE_URL = 'http://127.0.0.1:8402'
  const server = await startServer(t, environment)
  const own = await register(server, project)
  const asked: string[] = []
  const options = {
    url: environment.MAYFLY_BASE_URL,
    projectId: own.projectId,
    capability: own.capability,
    clock: server.clock,
    fetch: ((input, init) => {
      const { pathname } = new URL(String(input))
      asked.push(pathname)
      return fetch(server.url + pathname, init)
    }) satisfies typeof fetch,
  }
  const gate: Gate = createGate(options)
  const served: { body: string; receipt: Parameters<FetchHandler>[1] }[] = []
  const script: { answer: () => Response } = { answer: () => new Response('a cat') }
  const handler: FetchHandler = async (request, receipt) => {
    served.push({ body: await request.text(), receipt })
    return script.answer()
  }
  const visit = (headers: Record<string, string> = {}, ask: Visit = {}): Promise<Response> =>
    gate.fetch('render', handler)(aVisit(headers, ask))
  async function quote(headers: Record<string, string> = {}): Promise<GateQuote> {
    return (await (await visit(headers)).json()) as GateQuote
  }
  /** A Payment challenge, and a function that pays it and returns the credential. */
  async function challenge(): Promise<{ pay(): Promise<string> }> {
    const { headers } = await visit({ 'x-payment-protocol': 'payment' })
    const shown = paymentChallengeIn(headers.get('www-authenticate'))
    const invoice = decodeChargeRequest(shown.request)?.methodDetails.invoice ?? ''
    return {
      async pay() {
        const preimage = await server.pay(invoice)
        return paymentAuthorization({ challenge: shown, payload: { preimage } })
      },
    }
  }
  /** A receipt that the payer got directly from the service, without the API. */
  async function receipt(): Promise<string> {
    const { intentId, bolt11 } = await quote()
    const outcome = await server.mayfly.gate(own).prove(intentId, await server.pay(bolt11))
    return outcome.settled ? outcome.receipt : ''
  }
  /** Returns the intent to the state before its proof. */
  async function forget(intentId: string): Promise<void> {
    await query(server, 'delete from gate_receipt where intent_id = $1', intentId)
    await query(server, "update gate_intent set state = 'open' where intent_id = $1", intentId)
  }
  return {
    ...server,
    challenge,
    forget,
    options,
    gate,
    asked,
    served,
    script,
    handler,
    visit,
    quote,
    receipt,
  }
}
