/**
 * Makes a route paid. Everything about the request is checked before there is an invoice; then
 * the order of its Idempotency-Key is repeated, or a new one opened.
 */
import { hash } from 'node:crypto'
import type { FastifyRequest, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import type { Statement } from '../db/db.ts'
import type { Json } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import { type Binding, paymentHashIn } from '../payment/flows/flow.ts'
import { isIdempotencyKey } from '../payment/idempotency.ts'
import type { Orders, Purchase } from '../payment/orders.ts'
import type { PlanTerms } from '../payment/provisioning.ts'
import type { App } from './app.ts'
import {
  type ClientAddress,
  clientNetwork,
  clientScope,
  type ExactClient,
} from './client-address.ts'
import { checkoutUnavailable, type Phrase, problem } from './errors.ts'
import { type Flows, readAttempt, sendOutcome } from './flows.ts'
import { LIMITS, type Limit, type Limits } from './limits.ts'
import {
  isProvenBy,
  paymentPreimageHeader,
  pollBucket,
  showsPreimageOf,
} from './payment-preimage.ts'
import { type Expected, type PurchaseRooms, receive, type Take } from './receiving.ts'
import {
  ErrorSchema,
  errors,
  L402Challenge,
  PaymentAuthChallenge,
  PaymentQuote,
  PlanIdSchema,
} from './schemas.ts'
import type { IsClientUnknown } from './untrusted-proxies.ts'

export type PaidRoute = {
  product: Product
  path: string
  /** One line for the OpenAPI document. */
  summary: string
  contentType: 'application/json' | 'application/octet-stream'
  /** Of what is on sale. */
  maxBodyBytes: number
  /** The largest body under the plan that an order keeps, where a plan bounds it. */
  bodyBytesUnder?(plan: Json): number
  /** What a larger body is refused with. Default `request too large`. */
  tooLarge?: Phrase
  /** For the document; `parse` applies them. */
  bodySchema: TSchema
  headerSchemas: Record<string, TSchema>
  resourceSchema: TSchema
  /** The errors that only this route answers, for the document. */
  phrases?: Phrase[]
  /** Looks at the headers before the body is read. @throws Problem from the catalogue. */
  checkHeaders?(request: FastifyRequest): void
  /** What the buyer asks for. @throws Problem from the catalogue. */
  parse(
    body: Buffer,
    request: FastifyRequest,
  ): { planId: PlanId; terms: Json | ((plan: Json) => Json) }
  /** The plan as it is sold now, or null when it is not. */
  plan(planId: PlanId): (PlanTerms & Record<string, Json>) | null
  /** The invoice's text: product and plan, nothing else. */
  memo(planId: PlanId): string
  /**
   * Checks what counts for a new order alone, and says what its unit has to reserve.
   * @throws Problem from the catalogue.
   */
  reserve?(ask: {
    planId: PlanId
    terms: Json
    body: Buffer
    clientNetwork: string
  }): (orderId: string) => Statement[]
}

/** What every paid route is mounted with. */
export type Paying = {
  orders: Orders
  flows: Flows
  clientAddress: ClientAddress
  exactClient: ExactClient
  isClientUnknown: IsClientUnknown
  limits: Limits
  rooms: PurchaseRooms
}

/** Of a body that was not read yet: a credential shows whose it is without one. */
const NO_BODY = '0'.repeat(64)

export function mountPaidRoute(app: App, deps: Paying, route: PaidRoute): void {
  const { orders, flows, clientAddress, exactClient, isClientUnknown, limits, rooms } = deps

  /** What a request says of its order before its body is there, and how large that may be. */
  async function expected(request: FastifyRequest, purchase: Purchase): Promise<Expected> {
    const { maxBodyBytes, bodyBytesUnder } = route
    const { credential } = readAttempt(request, bindingOf(request, NO_BODY), flows)
    const paymentHash = paymentHashIn(credential)
    const order = await purchase.glance(paymentHash)
    // The preimage opens the payment hash that the credential names; we must have an order with that hash.
    const isPaid =
      (credential.kind === 'verified' || credential.kind === 'mismatched') &&
      order?.paymentHash === paymentHash
    return {
      orderId: order?.orderId ?? null,
      isProven: isPaid || showsPreimageOf(request, order?.paymentHash ?? null),
      // An order keeps the plan that it was sold with, whatever is on sale now.
      maxBodyBytes: Math.max(maxBodyBytes, order?.plan ? (bodyBytesUnder?.(order.plan) ?? 0) : 0),
    }
  }

  const bindingOf = (request: FastifyRequest, bodySha256: string): Binding => ({
    product: route.product,
    method: request.method,
    target: request.originalUrl,
    bodySha256,
  })

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // Bytes are read below, once the headers are right.
    scope.addContentTypeParser(route.contentType, (_request, _payload, done) => done(null))
    scope.post(
      route.path,
      {
        config: { readsBody: true },
        schema: documented(route),
        // The body is bound to the order as bytes, so it is parsed from them, below.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const key = idempotencyKey(request)
        if (key === null) throw problem('invalid idempotency key')
        checkEncoding(request)
        route.checkHeaders?.(request)
        const address = clientAddress(request.raw)
        const name = {
          route: route.path,
          key,
          clientAddress: clientScope(address),
          client: exactClient(request.raw),
        }
        const purchase = orders.purchase(name)
        const network = clientNetwork(address)
        const isSelling = (): boolean => orders.isSelling() && !isClientUnknown(request.raw)
        const take = onceEach((limit, bucket) => limits.take(limit, bucket, reply))
        const body = await receive(request.raw, reply.raw, {
          rooms,
          clientNetwork: network,
          maxBodyBytes: route.maxBodyBytes,
          hasOwnLimit: route.bodyBytesUnder !== undefined,
          ...(route.tooLarge ? { tooLarge: route.tooLarge } : {}),
          expected: () => expected(request, purchase),
          isSelling,
          take,
        })
        const { planId, terms } = route.parse(body, request)
        const binding = bindingOf(request, hash('sha256', body, 'hex'))
        const attempt = readAttempt(request, binding, flows)
        const asked = { product: route.product, planId, terms, bodySha256: binding.bodySha256 }
        const found = await purchase.find(asked, attempt.credential)
        // A client that has proven a payment to us is never asked to pay.
        if (found.kind === 'lost') throw problem('order not found')
        if (found.kind === 'known') {
          const { order } = found
          const isProven = await isProvenBy(request, reply, order.paymentHash, deps)
          await take(LIMITS.poll, pollBucket(order.orderId, isProven || order.isProven))
          const outcome = await order.answer({ isProven, body })
          return sendOutcome(reply, outcome, { attempt, binding, flows })
        }
        // The live catalogue, the node and the limits on new orders count only from here on.
        const plan = route.plan(planId)
        if (!plan) throw problem('invalid plan')
        // Refused for itself before it takes anything from the limits.
        const reserve = route.reserve?.({
          planId,
          terms: typeof terms === 'function' ? terms(plan) : terms,
          body,
          clientNetwork: network,
        })
        // Before the limits: who waits for the node as told must not run out of tries meanwhile.
        if (!isSelling()) throw checkoutUnavailable()
        await take(LIMITS.quote, network)
        const outcome = await purchase.open(asked, {
          plan,
          memo: route.memo(planId),
          clientNetwork: network,
          ...(limits.openOrders === null ? {} : { mostOpen: limits.openOrders }),
          ...(reserve ? { reserve } : {}),
        })
        return sendOutcome(reply, outcome, { attempt, binding, flows })
      },
    )
  })
}

/** A limit may be asked before the body is read and again after it: one request is counted once. */
function onceEach(take: Take): Take {
  const taken = new Set<string>()
  return async (limit: Limit, bucket: string) => {
    const name = `${limit.name} ${bucket}`
    if (taken.has(name)) return
    taken.add(name)
    await take(limit, bucket)
  }
}

/** The one Idempotency-Key of a request, or null where it is missing, repeated or malformed. */
export function idempotencyKey(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['idempotency-key']
  const key = lines?.length === 1 ? lines[0] : undefined
  return key !== undefined && isIdempotencyKey(key) ? key : null
}

/** A coded body has two sets of bytes, and clients and proxies change one into the other. */
function checkEncoding(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw problem('unsupported media type')
  }
}

function documented(route: PaidRoute): FastifySchema {
  const offers = offersOf(route)
  return {
    tags: ['payments'],
    summary: route.summary,
    consumes: [route.contentType],
    security: [{}, { payment: [] }, { l402: [] }],
    ...(offers.length > 0 ? { 'x-payment-info': { offers } } : {}),
    headers: Type.Object({
      'idempotency-key': Type.String({
        minLength: 8,
        maxLength: 128,
        description:
          'Names this purchase: a fresh UUIDv4 for each one intended, made before paying. One key is one order, from wherever it comes; an order whose key can be guessed and came from two addresses is delivered to proof of payment alone.',
      }),
      'x-payment-protocol': Type.Optional(
        Type.Enum(['payment', 'l402'], { description: 'Omitted: the native flow' }),
      ),
      'accept-payment': Type.Optional(
        Type.String({ description: '`lightning/charge` selects the Payment flow too' }),
      ),
      'accept-authenticate': Type.Optional(
        Type.String({ description: '`L402` selects the L402 flow too' }),
      ),
      authorization: Type.Optional(
        Type.String({
          description:
            'On the paid repeat: `Payment <base64url credential>` or `L402 <macaroon>:<preimage>`',
        }),
      ),
      'payment-preimage': paymentPreimageHeader,
      ...route.headerSchemas,
    }),
    body: route.bodySchema,
    response: {
      200: {
        description: 'Paid: the capability. Save it; it is not shown again after its first use.',
        headers: {
          'Payment-Receipt': Type.String({ description: 'With a Payment credential: its receipt' }),
        },
        content: {
          'application/json': {
            schema: Type.Object({ settled: Type.Literal(true), resource: route.resourceSchema }),
          },
        },
      },
      ...errors(
        'invalid plan',
        'invalid request body',
        'invalid idempotency key',
        'idempotency key reused with a different request',
        'unknown payment protocol',
        'invalid query',
        'unsupported media type',
        'request too large',
        'order not found',
        'order expired',
        'order refunded',
        'proof of payment required',
        'already delivered',
        'request timeout',
        'rate limited',
        'internal error',
        'checkout unavailable',
        ...(route.phrases ?? []),
      ),
      401: {
        description:
          'invalid L402 credential · invalid payment credential, for an order that is paid already',
        headers: {
          'WWW-Authenticate': Type.String({
            description:
              'The L402 challenge; for an order that is paid already a scheme and a realm, and nothing to pay',
          }),
        },
        content: { 'application/json': { schema: Type.Union([L402Challenge, ErrorSchema]) } },
      },
      402: {
        description:
          'Pay the invoice. Native: a quote, then poll the order. Payment and L402: a challenge, then repeat this request with the credential.',
        headers: {
          'WWW-Authenticate': Type.String({
            description: 'The Payment or the L402 challenge; none in the native flow',
          }),
        },
        content: {
          'application/json': { schema: Type.Union([PaymentQuote, L402Challenge]) },
          'application/problem+json': { schema: PaymentAuthChallenge },
        },
      },
    },
  } as FastifySchema
}

/** What each plan costs, for registries (draft-payment-discovery-01); the 402 is what counts. */
function offersOf({ plan, memo }: PaidRoute): Record<string, string>[] {
  return PlanIdSchema.enum.flatMap((planId) => {
    const terms = plan(planId)
    return terms
      ? [
          {
            intent: 'charge',
            method: 'lightning',
            amount: String(terms.priceSats),
            currency: 'sat',
            description: memo(planId),
          },
        ]
      : []
  })
}
