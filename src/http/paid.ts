/**
 * Makes a route paid. Everything about the request is checked before there is an invoice; then
 * the order of its Idempotency-Key is repeated, or a new one opened.
 */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import type { Json } from '../lib/jcs.ts'
import { renderQuote } from '../payment/flows/native.ts'
import { isIdempotencyKey } from '../payment/idempotency.ts'
import type { OrderRequest, Orders, Outcome } from '../payment/orders.ts'
import type { PlanId, PlanTerms, Product } from '../payment/provisioning.ts'
import type { App } from './app.ts'
import { type ClientAddress, clientNetwork, clientScope } from './client-address.ts'
import { checkoutUnavailable, problem } from './errors.ts'
import { type Limits, rateLimited } from './limits.ts'
import { errors, PaymentQuote } from './schemas.ts'

export type PaidRoute = {
  product: Product
  path: string
  /** One line for the OpenAPI document. */
  summary: string
  contentType: 'application/json' | 'application/octet-stream'
  maxBodyBytes: number
  /** For the document; `parse` applies them. */
  bodySchema: TSchema
  headerSchemas: Record<string, TSchema>
  resourceSchema: TSchema
  /** What the buyer asks for. @throws Problem from the catalogue. */
  parse(body: Buffer, request: FastifyRequest): { planId: PlanId; terms: Json }
  /** The plan as it is sold now, or null when it is not. */
  plan(planId: PlanId): (PlanTerms & Record<string, Json>) | null
  /** The invoice's text: product and plan, nothing else. */
  memo(planId: PlanId): string
}

export function mountPaidRoute(
  app: App,
  deps: { orders: Orders; clientAddress: ClientAddress; limits: Limits },
  route: PaidRoute,
): void {
  const { orders, clientAddress, limits } = deps
  async function refuseTooManyOpen(network: string): Promise<void> {
    if (limits.openOrders === null) return
    const open = await orders.openOf(network)
    if (open.count >= limits.openOrders) throw rateLimited(open.secondsToNext)
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      route.contentType,
      { parseAs: 'buffer', bodyLimit: route.maxBodyBytes },
      (_request, body, done) => done(null, body),
    )
    scope.post(
      route.path,
      {
        schema: documented(route),
        // The body is bound to the order as bytes, so it is parsed from them, below.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const key = idempotencyKey(request)
        if (key === null) throw problem('invalid idempotency key')
        checkProtocol(request)
        checkEncoding(request)
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
        const { planId, terms } = route.parse(body, request)
        const bodySha256 = createHash('sha256').update(body).digest('hex')
        const asked: OrderRequest = { product: route.product, planId, terms, bodySha256 }
        const address = clientAddress(request.raw)
        const name = { route: route.path, key, clientAddress: clientScope(address) }
        const known = await orders.find(name)
        if (known) {
          await limits.take('poll', known.orderId, reply)
          return answer(reply, await known.repeat(asked))
        }
        // The live catalogue, the node and the limits on new orders count only from here on.
        const plan = route.plan(planId)
        if (!plan) throw problem('invalid plan')
        const network = clientNetwork(address)
        await limits.take('quote', network, reply)
        await refuseTooManyOpen(network)
        const offer = { plan, memo: route.memo(planId), clientNetwork: network }
        return answer(reply, await orders.open(name, asked, offer))
      },
    )
  })
}

function answer(reply: FastifyReply, outcome: Outcome): FastifyReply {
  switch (outcome.kind) {
    case 'pending':
      return reply.code(402).send(renderQuote(outcome.quote))
    case 'delivered':
      return sendDelivered(reply, outcome.body)
    case 'checkout unavailable':
      throw checkoutUnavailable()
    default:
      throw problem(outcome.kind)
  }
}

/** The stored answer, byte for byte. */
export function sendDelivered(reply: FastifyReply, body: string): FastifyReply {
  return reply
    .code(200)
    .type('application/json; charset=utf-8')
    .serializer((text: string) => text)
    .send(body)
}

/** The one Idempotency-Key of a request, or null where it is missing, repeated or malformed. */
export function idempotencyKey(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['idempotency-key']
  const key = lines?.length === 1 ? lines[0] : undefined
  return key !== undefined && isIdempotencyKey(key) ? key : null
}

function checkProtocol(request: FastifyRequest): void {
  if (request.headers['x-payment-protocol'] !== undefined) throw problem('unknown payment protocol')
}

/** A coded body has two sets of bytes, and clients and proxies change one into the other. */
function checkEncoding(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw problem('unsupported media type')
  }
}

function documented(route: PaidRoute): FastifySchema {
  return {
    tags: ['payments'],
    summary: route.summary,
    consumes: [route.contentType],
    headers: Type.Object({
      'idempotency-key': Type.String({ minLength: 8, maxLength: 128 }),
      ...route.headerSchemas,
    }),
    body: route.bodySchema,
    response: {
      200: Type.Object({ settled: Type.Literal(true), resource: route.resourceSchema }),
      402: PaymentQuote,
      ...errors(
        'invalid plan',
        'invalid request body',
        'invalid idempotency key',
        'idempotency key reused with a different request',
        'unknown payment protocol',
        'unsupported media type',
        'request too large',
        'order expired',
        'already delivered',
        'request timeout',
        'rate limited',
        'internal error',
        'checkout unavailable',
      ),
    },
  } as FastifySchema
}
