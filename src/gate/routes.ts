/** GATE over HTTP: intents, polls and proofs for a project's server, and the keys for everybody. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { App } from '../http/app.ts'
import { bearerOf } from '../http/bearer.ts'
import { checkoutUnavailable, type Problem, problem } from '../http/errors.ts'
import { type Limits, rateLimited } from '../http/limits.ts'
import { idempotencyKey } from '../http/paid.ts'
import { errors } from '../http/schemas.ts'
import { compileValidator } from '../http/validation.ts'
import type { Clock } from '../lib/clock.ts'
import { authScheme } from '../protocol/auth-params.ts'
import { readPaymentCredential } from '../protocol/payment-auth.ts'
import type { GateChallenges } from './challenge.ts'
import { renderAuthorization, renderPending, renderQuote } from './render.ts'
import {
  GateAuthorization,
  GateJwks,
  GatePaymentChallenge,
  GatePending,
  GateProof,
  GateQuote,
} from './schema.ts'
import type { GateService, ProtectedRequest, Proven } from './service.ts'
import type { IntentRow, ProjectRow } from './store.ts'

/** Of a protected request. What is larger is not an API call that one pays for by the piece. */
const MAX_BODY_BYTES = 1024 * 1024
const JWKS_MAX_AGE_SECONDS = 300

type OfIntent = { Params: { intentId: string } }

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
        onRequest: async (request, reply) => {
          const project = await ownProject(service, request)
          if (!project) return limits.refuse(invalidCapability(), request, reply)
          // Nothing new for a suspended one; what was offered before is still honoured.
          if (project.suspended_at !== null) throw invalidCapability()
          await limits.take('gate', project.project_id, reply)
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
            if (isChallenge && opened.isOnOffer) {
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
        const project = await ownProject(service, request, 'any project')
        if (!project) return limits.refuse(invalidCapability(), request, reply)
        await limits.take('gate', project.project_id, reply)
        const intent = await service.intent(project.project_id, request.params.intentId)
        if (!intent || !isRequestOf(service, intent, request)) throw mismatch()
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
          ...errors('invalid project capability', 'intent mismatch', ...commonErrors),
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
    const lines = request.raw.headersDistinct.authorization ?? []
    if (!lines.some((line) => authScheme(line) === 'payment')) {
      const project = await ownProject(service, request)
      if (!project) return limits.refuse(invalidCapability(), request, reply)
      await limits.take('gate', project.project_id, reply)
      const intent = await service.intent(project.project_id, intentId)
      if (!intent || !isRequestOf(service, intent, request)) throw mismatch()
      return { intent, credentialPreimage: null }
    }
    const reading = readPaymentCredential(lines)
    const projectId = header(request, 'x-gate-project')
    const intent =
      reading.outcome === 'ok' && lines.length === 1 && projectId !== null
        ? await service.intent(projectId, intentId)
        : null
    const isOwn =
      intent !== null &&
      reading.outcome === 'ok' &&
      header(request, 'x-gate-method') !== null &&
      header(request, 'x-gate-path') !== null &&
      isRequestOf(service, intent, request) &&
      challenges.isFor(intent, reading.credential)
    if (!isOwn) return limits.refuse(mismatch(), request, reply)
    // Whoever was shown a challenge has one: it must not use up what the project itself may ask.
    await limits.take('poll', intent.intent_id, reply)
    return { intent, credentialPreimage: reading.credential.payload.preimage }
  }

  app.post<OfIntent & { Body: GateProof }>(
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
          'x-gate-project': Type.String({ pattern: '^gate_project_[A-Za-z0-9_-]+$' }),
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
}

function answer(reply: FastifyReply, proven: Proven, clock: Clock): FastifyReply {
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

/** The project of the bearer, which must be the one that is named, where one has to be. */
async function ownProject(
  service: GateService,
  request: FastifyRequest,
  named: 'named project' | 'any project' = 'named project',
): Promise<ProjectRow | null> {
  const capability = bearerOf(request.raw, 'gate_key')
  const project = capability === null ? null : await service.projectOf(capability)
  const isNamed = project?.project_id === header(request, 'x-gate-project')
  return project && (isNamed || named === 'any project') ? project : null
}

/** Whether the intent is for the request that the headers tell of. They may tell of nothing. */
function isRequestOf(service: GateService, intent: IntentRow, request: FastifyRequest): boolean {
  const fields = request.raw.headersDistinct
  const isTold = fields['x-gate-method'] !== undefined || fields['x-gate-path'] !== undefined
  if (!isTold) return true
  return service.isBound(intent, {
    method: header(request, 'x-gate-method') ?? intent.method,
    path: header(request, 'x-gate-path') ?? intent.path,
  })
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

/** The one line of a header, or null where there is none or several. */
function header(request: FastifyRequest, name: string): string | null {
  const lines = request.raw.headersDistinct[name]
  return lines?.length === 1 ? (lines[0] ?? null) : null
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

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
const invalidCapability = (): Problem =>
  problem('invalid project capability', { 'www-authenticate': 'Bearer' })
const mismatch = (): Problem => problem('intent mismatch', { 'www-authenticate': 'Bearer' })
