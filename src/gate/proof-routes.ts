/** Polling an intent, proving its payment, and giving its receipt back. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../http/app.ts'
import { invalid } from '../http/errors.ts'
import { LIMITS, type Limits } from '../http/limits.ts'
import { RETRY_AFTER } from '../http/response-headers.ts'
import { answer, BODY_ERRORS, errors, NoContent } from '../http/schemas.ts'
import type { Clock } from '../lib/clock.ts'
import { Type } from '../lib/json-schema.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { readPaymentCredential } from '../protocol/payment-auth.ts'
import { header, isRequestOf, mismatch, type OfIntent, ownIntent } from './access.ts'
import type { GateChallenges } from './challenge.ts'
import type { ProofOutcome } from './proofs.ts'
import { renderAuthorization, renderPending } from './render.ts'
import {
  GateAuthorization,
  GateGiveBack,
  GatePending,
  GateProof,
  gateHeaders,
  intentId,
} from './schema.ts'
import type { GateService } from './service.ts'
import type { IntentRow } from './store.ts'

const PROJECT = /^gate_project_[A-Za-z0-9_-]+$/

type ProofDeps = {
  service: GateService
  challenges: GateChallenges
  limits: Limits
  clock: Clock
}

/** The intent that the request is authorized for, and its credential's preimage, if any. */
type Claim = { intent: IntentRow; credentialPreimage: string | null }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the routes of one intent, after authorization. */
    gateClaim: Claim | null
  }
}

const security = [{ bearer: [] }]
const intentParams = Type.Object({ intentId })
const authorized = answer(GateAuthorization, {
  name: 'Authorized',
  description: 'Paid: the receipt lets one request in',
  headers: {
    'Gate-Receipt': {
      description: 'The receipt, a compact JWS',
      schema: Type.String(),
      example: 'eyJhbGciOiJFZERTQSJ9.eyJ...',
    },
  },
})
const pending = answer(GatePending, {
  name: 'Pending',
  description: 'Not paid, as far as anybody can tell',
  headers: RETRY_AFTER,
})
/** The capability alone suffices. Who also says which request an intent is for learns of a mix-up. */
const namedRequest = Type.Object({
  'x-gate-method': Type.Optional(
    Type.String({
      description: "If present, must be the intent's",
      examples: gateHeaders.method.examples,
    }),
  ),
  'x-gate-path': Type.Optional(
    Type.String({
      description: "If present, must be the intent's",
      examples: gateHeaders.path.examples,
    }),
  ),
})
const commonErrors = ['rate limited', 'internal error'] as const

export function mountProofs(app: App, deps: ProofDeps): void {
  app.decorateRequest('gateClaim', null)
  mountPoll(app, deps)
  mountProve(app, deps)
  mountGiveBack(app, deps)
}

function mountPoll(app: App, { service, limits, clock }: ProofDeps): void {
  app.get<OfIntent>(
    '/api/gate/intents/:intentId',
    {
      onRequest: async (request, reply) => {
        const intent = await ownIntent({ service, limits, request, reply })
        request.gateClaim = { intent, credentialPreimage: null }
      },
      schema: {
        tags: ['gate'],
        isInWholeOnly: true,
        operationId: 'pollIntent',
        summary: 'Poll an intent; asks its provider where that can verify',
        description:
          '200 has the receipt, once the payment is proven. Where no provider can verify it, the payer proves it with the preimage.',
        security,
        params: intentParams,
        headers: namedRequest,
        response: {
          200: authorized,
          402: pending,
          ...errors('invalid project capability', 'intent mismatch', ...commonErrors),
        },
      },
    },
    async (request, reply) =>
      sendOutcome(reply, await service.poll(claimOf(request).intent), clock),
  )
}

function mountProve(app: App, { service, challenges, limits, clock }: ProofDeps): void {
  /** Authorizes by the project's capability, or by a credential for the intent's own challenge. */
  async function claim(request: FastifyRequest<OfIntent>, reply: FastifyReply): Promise<Claim> {
    const projectId = header(request, 'x-gate-project')
    if (projectId === null || !PROJECT.test(projectId)) {
      throw invalid('malformed proof', { field: 'X-Gate-Project', expected: 'the id of a project' })
    }
    const lines = request.raw.headersDistinct.authorization ?? []
    if (lines.some((line) => authScheme(line) === 'payment')) {
      return claimByCredential(projectId, request, reply)
    }
    const named = 'named project'
    const intent = await ownIntent({ service, limits, request, reply, named })
    return { intent, credentialPreimage: null }
  }

  async function claimByCredential(
    projectId: string,
    request: FastifyRequest<OfIntent>,
    reply: FastifyReply,
  ): Promise<Claim> {
    const lines = request.raw.headersDistinct.authorization ?? []
    const reading = readPaymentCredential(lines)
    const credential = typeof reading !== 'string' && lines.length === 1 ? reading : null
    const intent = credential ? await service.intent(projectId, request.params.intentId) : null
    const isOwn =
      intent !== null &&
      credential !== null &&
      header(request, 'x-gate-method') !== null &&
      header(request, 'x-gate-path') !== null &&
      isRequestOf(service, intent, request) &&
      challenges.isFor(intent, credential)
    if (!isOwn) return limits.refuse(mismatch(), request, reply)
    await limits.take(LIMITS.poll, intent.intent_id, reply)
    return { intent, credentialPreimage: credential.payload.preimage }
  }

  app.post<OfIntent & { Body: GateProof }>(
    '/api/gate/intents/:intentId/prove',
    {
      onRequest: async (request, reply) => {
        request.gateClaim = await claim(request, reply)
      },
      config: { invalid: { json: 'malformed proof', body: 'malformed proof' } },
      schema: {
        tags: ['gate'],
        isInWholeOnly: true,
        operationId: 'proveIntent',
        summary: 'Prove the payment of an intent by its preimage',
        description:
          'The answer has the receipt, which lets one request in. Proving again returns it again.',
        security: [...security, { payment: [] }],
        params: intentParams,
        headers: Type.Object({
          'x-gate-project': Type.String({ pattern: PROJECT.source, ...gateHeaders.project }),
          'x-gate-method': Type.Optional(
            Type.String({
              description: 'Required with Authorization: Payment',
              examples: gateHeaders.method.examples,
            }),
          ),
          'x-gate-path': Type.Optional(
            Type.String({
              pattern: '^/',
              description: 'Required with Authorization: Payment',
              examples: gateHeaders.path.examples,
            }),
          ),
        }),
        body: GateProof,
        response: {
          200: authorized,
          402: pending,
          ...errors(
            'malformed proof',
            'unsupported media type',
            'request too large',
            'invalid project capability',
            'intent mismatch',
            'wrong preimage',
            'request timeout',
            ...commonErrors,
          ),
        },
      },
    },
    async (request, reply) => {
      const { intent, credentialPreimage } = claimOf(request)
      const { preimage } = request.body
      if (credentialPreimage !== null && credentialPreimage !== preimage) throw mismatch()
      return sendOutcome(reply, await service.prove(intent, preimage), clock)
    },
  )
}

/** The project's server reports that it failed a request, so that the payer can repeat it. */
function mountGiveBack(app: App, { service, limits }: ProofDeps): void {
  app.post<OfIntent & { Body: GateGiveBack }>(
    '/api/gate/intents/:intentId/give-back',
    {
      onRequest: async (request, reply) => {
        // Its own bucket: a payer's polls must not use up the project's give-backs.
        const bucketOf = ({ intent_id }: IntentRow): string => `${intent_id} give-back`
        const intent = await ownIntent({ service, limits, request, reply, bucketOf })
        request.gateClaim = { intent, credentialPreimage: null }
      },
      schema: {
        tags: ['gate'],
        isInWholeOnly: true,
        operationId: 'giveBackReceipt',
        summary: "Give a receipt back: the project's server failed the request that it let in",
        description: 'The payer then gets a new receipt for the same payment, at most twice.',
        security,
        params: intentParams,
        headers: namedRequest,
        body: GateGiveBack,
        response: {
          204: NoContent,
          ...errors(
            ...BODY_ERRORS,
            'invalid project capability',
            'intent mismatch',
            'give-back refused',
            ...commonErrors,
          ),
        },
      },
    },
    async (request, reply) => {
      const { intent } = claimOf(request)
      await service.giveBack(intent, request.body.receiptId)
      return reply.code(204).send()
    },
  )
}

function sendOutcome(reply: FastifyReply, outcome: ProofOutcome, clock: Clock): FastifyReply {
  if (outcome.kind === 'pending') {
    const { intent, retryAfterSeconds } = outcome
    if (retryAfterSeconds !== null) reply.header('retry-after', retryAfterSeconds)
    return reply.code(402).send(renderPending(intent, clock.now()))
  }
  const authorization = renderAuthorization(outcome.intent, outcome.receipt)
  return reply
    .code(200)
    .header('gate-receipt', authorization.receipt)
    .header('cache-control', 'private, no-store')
    .send(authorization)
}

function claimOf(request: FastifyRequest): Claim {
  if (!request.gateClaim) throw new Error('the route has no claim hook')
  return request.gateClaim
}
