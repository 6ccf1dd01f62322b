/** Chooses the payment flow of a purchase, and writes the outcome of its order in that flow. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Binding, type CheckedCredential, paymentHashIn } from '../../payment/flows/flow.ts'
import type { L402Flow } from '../../payment/flows/l402.ts'
import { renderQuote } from '../../payment/flows/native.ts'
import type { PaymentFlow } from '../../payment/flows/payment-auth.ts'
import type { Deliverable, Outcome } from '../../payment/order.ts'
import type { Quote } from '../../payment/quote.ts'
import { acceptsL402, acceptsPayment } from '../../protocol/accept.ts'
import { authScheme } from '../../protocol/auth-params.ts'
import type { PaymentProblem } from '../../protocol/payment-auth.ts'
import { checkoutUnavailable, invalid, problem } from '../errors.ts'
import { rateLimited } from '../limits.ts'

/** An unpaid order may free its reservation at any time: when it is paid or when it dies. */
const RETRY_ROOM_SECONDS = 60

const JSON_TYPE = 'application/json; charset=utf-8'
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export type Flows = { payment: PaymentFlow; l402: L402Flow }

/** How a client tries to pay: the protocol of its request, and the credential in it. */
export type PaymentAttempt =
  | { protocol: 'native'; credential: { kind: 'none' } }
  | { protocol: 'payment'; credential: CheckedCredential<PaymentProblem> }
  | { protocol: 'l402'; credential: CheckedCredential<'invalid L402 credential'> }

/**
 * Reads the payment attempt of a request. The credential's scheme decides the flow; without one,
 * X-Payment-Protocol does; without that, the preferences in the Accept- headers of the client.
 * @throws Problem `unknown payment protocol`, or `invalid query` when the target is too long to bind.
 */
export function readAttempt(
  request: FastifyRequest,
  binding: Binding,
  flows: Flows,
): PaymentAttempt {
  const selected = selectedProtocol(request)
  const authorization = request.raw.headersDistinct.authorization ?? []
  const schemes = new Set(authorization.map(authScheme))
  // In every flow: the next request for the same order may use another one.
  if (!flows.l402.canBind(binding.target)) throw problem('invalid query')
  const isL402 = schemes.has('l402') || schemes.has('lsat')
  const l402: PaymentAttempt = {
    protocol: 'l402',
    credential: flows.l402.read(authorization, binding),
  }
  if (schemes.has('payment')) {
    const credential = flows.payment.read(authorization, binding)
    // Beside a forged credential of the other scheme, a genuine one still counts.
    const isOther = paymentHashIn(credential) === null && paymentHashIn(l402.credential) !== null
    return isOther ? l402 : { protocol: 'payment', credential }
  }
  if (isL402 || selected === 'l402') return l402
  return { protocol: selected ?? 'native', credential: { kind: 'none' } }
}

/**
 * The wallet flow that the headers select, or null. @throws Problem `unknown payment protocol`.
 */
export function selectedProtocol(request: FastifyRequest): 'payment' | 'l402' | null {
  const fields = request.raw.headersDistinct
  const requested = protocolHeader(fields['x-payment-protocol'])
  if (requested !== null) return requested
  if (acceptsPayment(fields['accept-payment'] ?? [], 'lightning', 'charge')) return 'payment'
  return acceptsL402(fields['accept-authenticate'] ?? []) ? 'l402' : null
}

/** The challenges of a 402 of one URL. */
export type Shown = 'both' | 'payment' | 'l402'

/** The request that an outcome answers. `shown`: of a purchase of one URL. */
type Rendering = {
  attempt: PaymentAttempt
  binding: Binding
  flows: Flows
  shown: Shown | undefined
}

/** Sends the outcome in the flow of the attempt. @throws Problem for an outcome without a challenge. */
export function sendOutcome(
  reply: FastifyReply,
  outcome: Outcome | Deliverable,
  rendering: Rendering,
): FastifyReply {
  const { attempt, flows, shown } = rendering
  if (shown !== undefined) {
    reply.header('cache-control', 'private, no-store')
    reply.header('vary', 'Authorization, Accept, X-Payment-Protocol')
  }
  switch (outcome.kind) {
    case 'pending':
      return sendChallenge(reply, outcome.quote, rendering)
    case 'invalid credential':
      return outcome.quote
        ? sendChallenge(reply, outcome.quote, rendering)
        : sendUnpayable(reply, rendering)
    case 'delivered':
    case 'deliverable':
      // Of this order: the preimage of one may come beside the credential of another.
      if (
        attempt.protocol === 'payment' &&
        attempt.credential.kind === 'verified' &&
        attempt.credential.paymentHash === outcome.paymentHash
      ) {
        const { challengeId } = attempt.credential
        reply.header('payment-receipt', flows.payment.receipt({ ...outcome, challengeId }))
        reply.header('cache-control', 'private, no-store')
      }
      if (outcome.kind === 'deliverable') return reply.code(200).type(JSON_TYPE).send()
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
  return reply.code(200).type(JSON_TYPE).send(body)
}

/** The 401 for a wrong credential of an order that is already paid: it contains nothing to pay. */
function sendUnpayable(reply: FastifyReply, { attempt, flows }: Rendering): FastifyReply {
  const isL402 = attempt.protocol === 'l402'
  const error = isL402 ? 'invalid L402 credential' : 'invalid payment credential'
  reply.header('www-authenticate', isL402 ? flows.l402.bare() : flows.payment.bare())
  const isOfRequest = attempt.credential.kind === 'invalid'
  const fault = isOfRequest
    ? { field: 'Authorization', expected: isL402 ? FORMS.l402 : FORMS.payment }
    : {}
  return sendJson(reply.code(401), { error, ...fault }, JSON_TYPE)
}

/** What a credential looks like. A 401 says so where the challenge was right and the proof was not. */
const FORMS = {
  payment: 'one line: Payment and a credential whose preimage is the 64 hex digits of this payment',
  l402: 'one line: L402 <macaroon>:<preimage>, the preimage as the 64 hex digits of this payment',
}

/** A 402; or the 401 for an invalid L402 credential, but not at an address, whose clients recover from a 402 alone. */
function sendChallenge(
  reply: FastifyReply,
  quote: Quote,
  { attempt, binding, flows, ...rendering }: Rendering,
): FastifyReply {
  const shown: Shown | 'native' = rendering.shown ?? attempt.protocol
  reply.code(402)
  if (shown === 'native') return sendJson(reply, renderQuote(quote), JSON_TYPE)
  if (shown === 'l402') {
    const isRefused = !binding.isOneUrl && attempt.credential.kind === 'invalid'
    if (isRefused) reply.code(401)
    const error = isRefused ? 'invalid L402 credential' : 'payment required'
    const { field, body } = flows.l402.challenge(quote, binding, error)
    return sendJson(reply.header('www-authenticate', field), body, JSON_TYPE)
  }
  const reason = attempt.protocol === 'payment' ? paymentProblem(attempt) : 'payment-required'
  const payment = flows.payment.challenge(quote, binding, reason)
  if (shown === 'payment') {
    return sendJson(reply.header('www-authenticate', payment.field), payment.body, PROBLEM_TYPE)
  }
  const l402 = flows.l402.challenge(quote, binding, 'payment required')
  const { macaroon, invoice } = l402.body
  return sendJson(
    reply.header('www-authenticate', [payment.field, l402.field]),
    { ...payment.body, macaroon, invoice },
    PROBLEM_TYPE,
  )
}

function paymentProblem({ credential }: PaymentAttempt & { protocol: 'payment' }): PaymentProblem {
  switch (credential.kind) {
    case 'none':
      return 'payment-required'
    case 'invalid':
      return credential.reason
    default:
      return 'invalid-challenge'
  }
}

/** As text, which skips the response schemas: a 402 has three, and choosing costs more than it checks. */
function sendJson(reply: FastifyReply, body: object, type: string): FastifyReply {
  return reply.type(type).send(JSON.stringify(body))
}

function protocolHeader(lines: string[] | undefined): 'payment' | 'l402' | null {
  if (lines === undefined) return null
  const value = lines.length === 1 ? lines[0]?.trim().toLowerCase() : undefined
  if (value === 'payment' || value === 'l402') return value
  throw invalid('unknown payment protocol', {
    field: 'X-Payment-Protocol',
    expected: 'payment or l402',
  })
}
