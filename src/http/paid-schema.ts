/** How the OpenAPI document describes a paid route. */
import type { FastifySchema } from 'fastify'
import type { PaidRoute } from './paid-route.ts'
import { paymentPreimageHeader } from './payment-preimage.ts'
import {
  ErrorSchema,
  errors,
  L402Challenge,
  PaymentAuthChallenge,
  PaymentQuote,
  PlanIdSchema,
} from './schemas.ts'
import { Type } from './type.ts'

export function paidRouteSchema(route: PaidRoute): FastifySchema {
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

/** What each plan costs, for registries (draft-payment-discovery-01). Only the 402 is binding. */
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
