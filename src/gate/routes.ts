/** GATE over HTTP: intents, polls and proofs for a project's server, and the keys for everybody. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { App } from '../http/app.ts'
import { checkoutUnavailable, type Problem, problem } from '../http/errors.ts'
import { type Limits, rateLimited } from '../http/limits.ts'
import { idempotencyKey } from '../http/paid.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { compileValidator } from '../http/validation.ts'
import type { Clock } from '../lib/clock.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { readPaymentCredential } from '../protocol/payment-auth.ts'
import {
  header,
  invalidCapability,
  isRequestOf,
  mismatch,
  type OfIntent,
  ownIntent,
  ownProject,
  takeVisit,
} from './access.ts'
import type { GateChallenges } from './challenge.ts'
import type { ProtectedRequest } from './intents.ts'
import type { ProofOutcome } from './proofs.ts'
import { renderAuthorization, renderPending, renderQuote } from './render.ts'
import {
  GateAuthorization,
  GateGiveBack,
  GateJwks,
  GatePaymentChallenge,
  GatePending,
  GateProof,
  GateQuote,
} from './schema.ts'
import type { GateService } from './service.ts'
import type { IntentRow, ProjectRow } from './store.ts'

/** Of a protected request. What is larger is not an API call that one pays for by the piece. */
const MAX_BODY_BYTES = 1024 * 1024
const JWKS_MAX_AGE_SECONDS = 300
/** Until the operator may have looked. */
const RETRY_UNHONOURED_SECONDS = 60
const PROJECT = /^gate_project_[A-Za-z0-9_-]+$/

type GateDeps = {
  service: GateService
  challenges: GateChallenges
  limits: Limits
  clock: Clock
}

/** What an intent is proven with, once it is known whose it is. */
type Claim = { intent: IntentRow; credentialPreimage: string | null }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set where a route asks for the capability of a project. */
    gateProject: ProjectRow | null
    /** Set where a route asks for the right to one intent. */
    gateClaim: Claim | null
  }
}

const security = [{ bearer: [] }]
const intentParams = Type.Object({ intentId: Type.String() })
const commonErrors = ['rate limited', 'internal error'] as const

/** Headers are judged by hand, since what is wrong with each has a phrase of its own. */
const uncheckedHeaders: FastifySchemaCompiler<TSchema> = (route) =>
  route.httpPart === 'headers' ? () => true : compileValidator(route)

export function mountGate(app: App, deps: GateDeps): void {
  app.decorateRequest('gateProject', null)
  app.decorateRequest('gateClaim', null)
  mountIntents(app, deps)
  mountPoll(app, deps)
  mountProve(app, deps)
  mountGiveBack(app, deps)
  app.get(
    '/.well-known/gate-jwks.json',
    {
      schema: {
        tags: ['gate'],
        summary: 'The Ed25519 keys that verify GATE receipts',
        response: { 200: GateJwks, ...errors('internal error') },
      },
    },
    async (_request, reply) =>
      reply
        .header('cache-control', `public, max-age=${JWKS_MAX_AGE_SECONDS}`)
        .send(deps.service.jwks),
  )
}

function mountIntents(app: App, { service, challenges, limits }: GateDeps): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      ['application/json', 'application/octet-stream'],
      { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
      (_request, body, done) => done(null, body),
    )
    scope.post(
      '/api/gate/intents',
      {
        bodyLimit: MAX_BODY_BYTES,
        onRequest: async (request, reply) => {
          if (header(request, 'x-gate-project') === null) throw problem('invalid binding')
          const project = await ownProject(service, request)
          if (!project) return limits.refuse(invalidCapability(), request, reply)
          // Nothing new for a suspended one; what was offered before is still honoured.
          if (project.suspended_at !== null) throw invalidCapability()
          await takeVisit(limits, project, request, reply)
          request.gateProject = project
        },
        schema: {
          tags: ['gate'],
          summary: 'Create or recover one payment intent, bound to one request',
          security,
          consumes: ['application/json', 'application/octet-stream'],
          headers: Type.Object({
            'idempotency-key': Type.String({ minLength: 8, maxLength: 128 }),
            'x-gate-project': Type.String(),
            'x-gate-route': Type.String(),
            'x-gate-method': Type.String(),
            'x-gate-path': Type.String(),
            'x-payment-protocol': Type.Optional(Type.Enum(['payment'])),
            'x-gate-visitor': Type.Optional(
              Type.String({
                description:
                  'The network of the visitor, `203.0.113.0/24` or `2001:db8:1::/48`: new intents are then limited by it, and else by project',
              }),
            ),
          }),
          response: {
            402: Type.Union([GateQuote, GatePaymentChallenge], {
              description: 'The quote of this request, in the flow that was asked for',
            }),
            ...errors(
              'invalid binding',
              'invalid idempotency key',
              'idempotency key reused with a different request',
              'unknown payment protocol',
              'unsupported media type',
              'request too large',
              'invalid project capability',
              'no credits',
              'request timeout',
              'checkout unavailable',
              ...commonErrors,
            ),
          },
        },
        // The body is hashed, not read.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const project = request.gateProject
        if (!project) throw new Error('the route has no capability hook')
        const key = idempotencyKey(request)
        if (key === null) throw problem('invalid idempotency key')
        const isChallenge = asksForChallenge(request)
        const opened = await service.open(project, key, protectedRequest(request))
        switch (opened.kind) {
          case 'quote':
            if (isChallenge && opened.isPayable) {
              const { field, body } = challenges.challenge(opened.intent)
              return sendJson(
                reply.code(402).header('www-authenticate', field),
                body,
                'application/problem+json; charset=utf-8',
              )
            }
            return sendJson(reply.code(402), renderQuote(opened.intent))
          case 'checkout unavailable':
            throw checkoutUnavailable()
          case 'too many open':
            throw rateLimited(opened.waitSeconds)
          case 'invalid project capability':
            throw invalidCapability()
          default:
            throw problem(opened.kind)
        }
      },
    )
  })
}

function mountPoll(app: App, { service, limits, clock }: GateDeps): void {
  app.get<OfIntent>(
    '/api/gate/intents/:intentId',
    {
      onRequest: async (request, reply) => {
        const intent = await ownIntent({ service, limits }, request, reply)
        request.gateClaim = { intent, credentialPreimage: null }
      },
      schema: {
        tags: ['gate'],
        summary: 'Poll an intent; asks its provider where that can verify',
        security,
        params: intentParams,
        response: {
          200: GateAuthorization,
          402: GatePending,
          ...errors(
            'invalid project capability',
            'intent mismatch',
            'payment not honoured',
            ...commonErrors,
          ),
        },
      },
      validatorCompiler: uncheckedHeaders,
    },
    async (request, reply) => answer(reply, await service.poll(claimOf(request).intent), clock),
  )
}

function mountProve(app: App, { service, challenges, limits, clock }: GateDeps): void {
  /** By the capability of its project, or by a credential of its own challenge. */
  async function claim(request: FastifyRequest<OfIntent>, reply: FastifyReply): Promise<Claim> {
    const { intentId } = request.params
    const named = header(request, 'x-gate-project')
    if (named === null || !PROJECT.test(named)) throw problem('malformed proof')
    const lines = request.raw.headersDistinct.authorization ?? []
    if (!lines.some((line) => authScheme(line) === 'payment')) {
      const named = 'named project'
      const intent = await ownIntent({ service, limits }, request, reply, { named })
      return { intent, credentialPreimage: null }
    }
    const reading = readPaymentCredential(lines)
    const intent =
      reading.outcome === 'ok' && lines.length === 1 ? await service.intent(named, intentId) : null
    const isOwn =
      intent !== null &&
      reading.outcome === 'ok' &&
      header(request, 'x-gate-method') !== null &&
      header(request, 'x-gate-path') !== null &&
      isRequestOf(service, intent, request) &&
      challenges.isFor(intent, reading.credential)
    if (!isOwn) return limits.refuse(mismatch(), request, reply)
    await limits.take('poll', intent.intent_id, reply)
    return { intent, credentialPreimage: reading.credential.payload.preimage }
  }

  app.register(async (scope) => {
    // What is called text is not read as JSON: its sender meant something else.
    scope.removeContentTypeParser('text/plain')
    scope.post<OfIntent & { Body: GateProof }>(
      '/api/gate/intents/:intentId/prove',
      {
        onRequest: async (request, reply) => {
          request.gateClaim = await claim(request, reply)
        },
        config: { invalid: { body: 'malformed proof' } },
        schema: {
          tags: ['gate'],
          summary: 'Prove the payment of an intent by its preimage',
          security,
          params: intentParams,
          headers: Type.Object({
            'x-gate-project': Type.String({ pattern: PROJECT.source }),
            'x-gate-method': Type.Optional(
              Type.String({ description: 'Required with Authorization: Payment' }),
            ),
            'x-gate-path': Type.Optional(
              Type.String({ pattern: '^/', description: 'Required with Authorization: Payment' }),
            ),
          }),
          body: GateProof,
          response: {
            200: GateAuthorization,
            402: GatePending,
            ...errors(
              'malformed proof',
              'unsupported media type',
              'request too large',
              'invalid project capability',
              'intent mismatch',
              'wrong preimage',
              'payment not honoured',
              'request timeout',
              ...commonErrors,
            ),
          },
        },
        validatorCompiler: uncheckedHeaders,
      },
      async (request, reply) => {
        const { intent, credentialPreimage } = claimOf(request)
        const { preimage } = request.body
        if (credentialPreimage !== null && credentialPreimage !== preimage) throw mismatch()
        return answer(reply, await service.prove(intent, preimage), clock)
      },
    )
  })
}

/** The project's server says that it failed a request, so that the payer may have it once more. */
function mountGiveBack(app: App, { service, limits }: GateDeps): void {
  app.register(async (scope) => {
    scope.removeContentTypeParser('text/plain')
    scope.post<OfIntent & { Body: GateGiveBack }>(
      '/api/gate/intents/:intentId/give-back',
      {
        onRequest: async (request, reply) => {
          // A bucket of its own: repeats of a payer who waits do not keep the project from it.
          const bucketOf = ({ intent_id }: IntentRow): string => `${intent_id} give-back`
          const intent = await ownIntent({ service, limits }, request, reply, { bucketOf })
          request.gateClaim = { intent, credentialPreimage: null }
        },
        schema: {
          tags: ['gate'],
          summary: "Give a receipt back: the project's server failed the request that it let in",
          security,
          params: intentParams,
          body: GateGiveBack,
          response: {
            204: NoContent,
            ...errors(
              'invalid request body',
              'unsupported media type',
              'request too large',
              'invalid project capability',
              'intent mismatch',
              'give-back refused',
              'request timeout',
              ...commonErrors,
            ),
          },
        },
        validatorCompiler: uncheckedHeaders,
        config: { invalid: { body: 'invalid request body' } },
      },
      async (request, reply) => {
        const given = await service.giveBack(claimOf(request).intent, request.body.receiptId)
        if (given === 'refused') throw problem('give-back refused')
        return reply.code(204).send()
      },
    )
  })
}

function answer(reply: FastifyReply, proven: ProofOutcome, clock: Clock): FastifyReply {
  if (proven.kind === 'wrong preimage') throw wrongPreimage()
  if (proven.kind === 'unhonoured') throw notHonoured()
  if (proven.kind === 'pending') {
    const { intent, retryAfterSeconds } = proven
    if (retryAfterSeconds !== null) reply.header('retry-after', retryAfterSeconds)
    return reply.code(402).send(renderPending(intent, clock.now()))
  }
  const authorization = renderAuthorization(proven.intent, proven.receipt)
  return reply
    .code(200)
    .header('gate-receipt', authorization.receipt)
    .header('cache-control', 'private, no-store')
    .send(authorization)
}

function protectedRequest(request: FastifyRequest): ProtectedRequest {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw problem('unsupported media type')
  }
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const routeId = header(request, 'x-gate-route')
  const method = header(request, 'x-gate-method')
  const path = header(request, 'x-gate-path')
  if (routeId === null || method === null || path === null) throw problem('invalid binding')
  return { routeId, method, path, bodySha256: hash('sha256', body, 'hex') }
}

function asksForChallenge(request: FastifyRequest): boolean {
  const lines = request.raw.headersDistinct['x-payment-protocol']
  if (lines === undefined) return false
  if (lines.length === 1 && lines[0]?.trim().toLowerCase() === 'payment') return true
  throw problem('unknown payment protocol')
}

function claimOf(request: FastifyRequest): Claim {
  if (!request.gateClaim) throw new Error('the route has no claim hook')
  return request.gateClaim
}

function sendJson(
  reply: FastifyReply,
  body: object,
  type = 'application/json; charset=utf-8',
): FastifyReply {
  return reply
    .type(type)
    .serializer((text: string) => text)
    .send(JSON.stringify(body))
}

const notHonoured = (): Problem =>
  problem('payment not honoured', { 'retry-after': String(RETRY_UNHONOURED_SECONDS) })
const wrongPreimage = (): Problem => problem('wrong preimage', { 'www-authenticate': 'Bearer' })
