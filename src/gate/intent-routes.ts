/** Creating an intent: the quote of one request, as JSON or as a `Payment` challenge. */

import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../http/app.ts'
import { inScope, requirePlainBody } from '../http/body.ts'
import { idempotencyKey, invalidKey } from '../http/credentials.ts'
import { invalid, type Problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import { wwwAuthenticate } from '../http/response-headers.ts'
import { errors, keyHeader } from '../http/schemas.ts'
import { Type } from '../lib/json-schema.ts'
import { header, ownProject, takeVisit } from './access.ts'
import type { GateChallenges } from './challenge.ts'
import { invalidCapability, type ProtectedRequest } from './intents.ts'
import { renderQuote } from './render.ts'
import { GatePaymentChallenge, GateQuote, gateHeaders } from './schema.ts'
import type { GateService } from './service.ts'
import type { ProjectRow } from './store.ts'

/** The maximum body of a protected request, which is enough for an API call. */
const MAX_BODY_BYTES = 1024 * 1024

declare module 'fastify' {
  interface FastifyRequest {
    /** The project whose capability the request carries. */
    gateProject: ProjectRow | null
  }
}

const headers = Type.Object({
  'idempotency-key': keyHeader('Names this intent: a fresh UUIDv4 for each protected request'),
  'x-gate-project': Type.String(gateHeaders.project),
  'x-gate-route': Type.String(gateHeaders.route),
  'x-gate-method': Type.String(gateHeaders.method),
  'x-gate-path': Type.String(gateHeaders.path),
  'x-payment-protocol': Type.Optional(
    Type.Enum(['payment'], {
      description: 'Omitted: a quote. `payment`: a challenge',
      examples: ['payment'],
    }),
  ),
  'x-gate-visitor': Type.Optional(
    Type.String({
      description:
        'The network of the visitor, `203.0.113.0/24` or `2001:db8:1::/48`: new intents are then limited by it, and else by project',
      examples: ['203.0.113.0/24'],
    }),
  ),
})

const schema = {
  tags: ['gate'],
  isInWholeOnly: true,
  operationId: 'createIntent',
  summary: 'Create or recover one payment intent, bound to one request',
  description:
    'The invoice is of the Lightning Address of the project. The same key and request return the same intent. One credit is spent when its payment is proven.',
  security: [{ bearer: [] }],
  requestBody: {
    description: 'The body of the protected request, byte for byte: it is hashed and not kept',
    content: {
      'application/json': { schema: {}, example: { size: 2 } },
      'application/octet-stream': { schema: Type.String({ format: 'binary' }), example: 'bytes' },
    },
  },
  headers,
  response: {
    402: {
      description: 'The quote of this request, or a challenge if that was asked for',
      headers: wwwAuthenticate(
        'The challenge; none in a quote',
        'Payment id="k2Vx...", realm="gate", method="lightning", intent="charge", request="eyJh..."',
      ),
      content: {
        'application/json': { schema: GateQuote },
        'application/problem+json': { schema: GatePaymentChallenge },
      },
    },
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
      'rate limited',
      'internal error',
    ),
  },
}

export function mountIntents(
  app: App,
  deps: { service: GateService; challenges: GateChallenges; limits: Limits },
): void {
  const { service, challenges, limits } = deps
  app.decorateRequest('gateProject', null)

  async function authorize(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (header(request, 'x-gate-project') === null) throw missing('X-Gate-Project')
    const project = await ownProject(service, request)
    if (!project) return limits.refuse(invalidCapability(), request, reply)
    // A suspended project gets no new intents. Its existing ones are still honoured.
    if (project.suspended_at !== null) throw invalidCapability()
    await takeVisit({ limits, project, request, reply })
    request.gateProject = project
  }

  inScope(app, (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      ['application/json', 'application/octet-stream'],
      { parseAs: 'buffer' },
      (_request, body, done) => done(null, body),
    )
    scope.post(
      '/api/gate/intents',
      {
        bodyLimit: MAX_BODY_BYTES,
        onRequest: authorize,
        schema,
        // The body is hashed and not parsed.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const project = request.gateProject
        if (!project) throw new Error('the route has no capability hook')
        const key = idempotencyKey(request)
        if (key === null) throw invalidKey()
        const isChallenge = asksForChallenge(request)
        const { intent, isPayable } = await service.open(project, key, protectedRequest(request))
        reply.code(402)
        if (!isChallenge || !isPayable) return sendJson(reply, renderQuote(intent))
        const { field, body } = challenges.challenge(intent)
        reply.header('www-authenticate', field)
        return sendJson(reply, body, 'application/problem+json; charset=utf-8')
      },
    )
  })
}

function protectedRequest(request: FastifyRequest): ProtectedRequest {
  requirePlainBody(request)
  const routeId = header(request, 'x-gate-route')
  if (routeId === null) throw missing('X-Gate-Route')
  const method = header(request, 'x-gate-method')
  if (method === null) throw missing('X-Gate-Method')
  const path = header(request, 'x-gate-path')
  if (path === null) throw missing('X-Gate-Path')
  const { body = '' } = request as { body?: Buffer }
  return { routeId, method, path, bodySha256: hash('sha256', body, 'hex') }
}

/** The refusal of a request that lacks this header, or has it twice. */
const missing = (field: string): Problem =>
  invalid('invalid binding', { field, expected: 'one value' })

function asksForChallenge(request: FastifyRequest): boolean {
  const lines = request.raw.headersDistinct['x-payment-protocol']
  if (lines === undefined) return false
  if (lines.length === 1 && lines[0]?.trim().toLowerCase() === 'payment') return true
  throw invalid('unknown payment protocol', { field: 'X-Payment-Protocol', expected: 'payment' })
}

function sendJson(
  reply: FastifyReply,
  body: object,
  type = 'application/json; charset=utf-8',
): FastifyReply {
  return reply.type(type).send(JSON.stringify(body))
}
