/** Chooses the flow that a purchase speaks, and writes an order's state in it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Binding, Presented } from '../payment/flows/flow.ts'
import type { L402Flow } from '../payment/flows/l402.ts'
import { renderQuote } from '../payment/flows/native.ts'
import type { PaymentFlow } from '../payment/flows/payment-auth.ts'
import type { Outcome, Quote } from '../payment/orders.ts'
import { acceptsL402, acceptsPayment } from '../protocol/accept.ts'
import { authScheme } from '../protocol/auth-params.ts'
import type { PaymentProblem } from '../protocol/payment-auth.ts'
import { checkoutUnavailable, problem } from './errors.ts'
import { rateLimited } from './limits.ts'

/** Unpaid orders give back what they reserve when they are paid or die: it may be at any time. */
const RETRY_ROOM_SECONDS = 60

const JSON_TYPE = 'application/json; charset=utf-8'

export type Flows = { payment: PaymentFlow; l402: L402Flow }

/** A purchase as its client speaks it: with which protocol, and with what proof. */
export type Spoken =
  | { protocol: 'native'; presented: { kind: 'none' } }
  | { protocol: 'payment'; presented: Presented<PaymentProblem> }
  | { protocol: 'l402'; presented: Presented<'invalid L402 credential'> }

/**
 * Reads the flow off a request. A credential selects its own; then X-Payment-Protocol, then the
 * preferences that stock clients send by themselves.
 * @throws Problem `unknown payment protocol`, or `invalid query` for a target too long to bind.
 */
export function readFlow(request: FastifyRequest, binding: Binding, flows: Flows): Spoken {
  const fields = request.raw.headersDistinct
  const asked = protocolHeader(fields['x-payment-protocol'])
  const credentials = fields.authorization ?? []
  const schemes = new Set(credentials.map(authScheme))
  // In every flow: the next request of the same order may come in another one.
  if (!flows.l402.canBind(binding.target)) throw problem('invalid query')
  if (schemes.has('payment')) {
    return { protocol: 'payment', presented: flows.payment.read(credentials, binding) }
  }
  const isL402 = schemes.has('l402') || schemes.has('lsat')
  const prefersPayment = () => acceptsPayment(fields['accept-payment'] ?? [], 'lightning', 'charge')
  const prefersL402 = () => acceptsL402(fields['accept-authenticate'] ?? [])
  if (isL402 || asked === 'l402' || (asked === null && !prefersPayment() && prefersL402())) {
    return { protocol: 'l402', presented: flows.l402.read(credentials, binding) }
  }
  if (asked === 'payment' || (asked === null && prefersPayment())) {
    return { protocol: 'payment', presented: { kind: 'none' } }
  }
  return { protocol: 'native', presented: { kind: 'none' } }
}

/** Writes the outcome in the client's own flow. @throws Problem for what has no challenge. */
export function answerIn(
  reply: FastifyReply,
  spoken: Spoken,
  outcome: Outcome,
  binding: Binding,
  flows: Flows,
): FastifyReply {
  switch (outcome.kind) {
    case 'pending':
    case 'credential refused':
      return ask(reply, spoken, outcome.quote, binding, flows)
    case 'credential worthless':
      return refuse(reply, spoken, flows)
    case 'delivered':
      if (spoken.protocol === 'payment' && spoken.presented.kind === 'right') {
        const { challengeId } = spoken.presented
        reply.header('payment-receipt', flows.payment.receipt({ ...outcome, challengeId }))
        reply.header('cache-control', 'private, no-store')
      }
      return sendDelivered(reply, outcome.body)
    case 'checkout unavailable':
      throw checkoutUnavailable()
    case 'rate limited':
      throw rateLimited(outcome.retryAfterSeconds ?? RETRY_ROOM_SECONDS)
    default:
      throw problem(outcome.kind)
  }
}

/** The stored answer, byte for byte. */
export function sendDelivered(reply: FastifyReply, body: string): FastifyReply {
  return reply
    .code(200)
    .type(JSON_TYPE)
    .serializer((text: string) => text)
    .send(body)
}

/** The 401 for a credential of what is paid already: nothing of it can be paid. */
function refuse(reply: FastifyReply, { protocol }: Spoken, flows: Flows): FastifyReply {
  const isL402 = protocol === 'l402'
  const error = isL402 ? 'invalid L402 credential' : 'invalid payment credential'
  reply.header('www-authenticate', isL402 ? flows.l402.bare() : flows.payment.bare())
  return sendJson(reply.code(401), { error }, JSON_TYPE)
}

/** A 402, or the 401 of an L402 credential that never was any good. */
function ask(
  reply: FastifyReply,
  spoken: Spoken,
  quote: Quote,
  binding: Binding,
  flows: Flows,
): FastifyReply {
  const { presented } = spoken
  switch (spoken.protocol) {
    case 'native':
      return sendJson(reply.code(402), renderQuote(quote), JSON_TYPE)
    case 'payment': {
      const { field, body } = flows.payment.challenge(quote, binding, paymentProblem(spoken))
      reply.header('www-authenticate', field)
      return sendJson(reply.code(402), body, 'application/problem+json; charset=utf-8')
    }
    case 'l402': {
      const isBad = presented.kind === 'bad' || presented.kind === 'unproven'
      const error = isBad ? 'invalid L402 credential' : 'payment required'
      const { field, body } = flows.l402.challenge(quote, binding, error)
      reply.header('www-authenticate', field)
      return sendJson(reply.code(isBad ? 401 : 402), body, JSON_TYPE)
    }
  }
}

function paymentProblem({ presented }: Spoken & { protocol: 'payment' }): PaymentProblem {
  switch (presented.kind) {
    case 'none':
      return 'payment-required'
    case 'bad':
    case 'unproven':
      return presented.reason
    default:
      return 'invalid-challenge'
  }
}

/** Past the schemas, of which a 402 has three: choosing among them costs more than it checks. */
function sendJson(reply: FastifyReply, body: object, type: string): FastifyReply {
  return reply
    .type(type)
    .serializer((text: string) => text)
    .send(JSON.stringify(body))
}

function protocolHeader(lines: string[] | undefined): 'payment' | 'l402' | null {
  if (lines === undefined) return null
  const value = lines.length === 1 ? lines[0]?.trim().toLowerCase() : undefined
  if (value === 'payment' || value === 'l402') return value
  throw problem('unknown payment protocol')
}
