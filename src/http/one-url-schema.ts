/** How the OpenAPI document describes a purchase of one URL. */
import type { FastifySchema } from 'fastify'
import type { OneUrlRoute } from './paid-route.ts'
import { offersOf, PAYMENT_RECEIPT } from './paid-schema.ts'
import { wwwAuthenticate } from './response-headers.ts'
import {
  answer,
  ErrorSchema,
  errors,
  OneUrlChallenge,
  OneUrlL402Challenge,
  PlanIdSchema,
  settled,
} from './schemas.ts'
import { Type } from './type.ts'

/**
 * Its GET is in the document, and stands for HEAD, POST and the twin: registries read documents up to 64 KB,
 * and a registry that probes each announced operation must stay below the limit on new orders.
 */
export function oneUrlSchema(route: OneUrlRoute): FastifySchema {
  const product = route.product.slice(0, 1).toUpperCase() + route.product.slice(1)
  const offers = offersOf(route)
  // Registries probe the address of the example, so its plan must be on sale.
  const example = PlanIdSchema.enum.find((planId) => route.plan(planId) !== null)
  return {
    tags: ['payments'],
    operationId: `buy${product}ByUrl`,
    summary: `${route.summary} by one URL; HEAD and POST do the same, and …/l402 shows L402 alone`,
    security: [{}, { payment: [] }, { l402: [] }],
    ...(offers.length > 0 ? { 'x-payment-info': { offers } } : {}),
    params: Type.Object({
      // In words of its own: registries do not follow a reference to a shared parameter.
      planId: Type.Enum(PlanIdSchema.enum, {
        description: `A plan of ${route.product.toUpperCase()}`,
        examples: [example ?? 'spark'],
      }),
    }),
    headers: Type.Object({
      'x-payment-protocol': Type.Optional(
        Type.Enum(['payment', 'l402'], {
          description: 'Shows this challenge alone',
          examples: ['l402'],
        }),
      ),
      authorization: Type.Optional(
        Type.String({
          description: '`Payment <base64url credential>` or `L402 <macaroon>:<preimage>`',
          examples: ['L402 AgEG...:7f83b165...'],
        }),
      ),
    }),
    response: {
      200: answer(settled(route.resourceSchema, `Settled${product}`), {
        description: 'Paid: the capability. Save it; it is not shown again after its first use.',
        headers: PAYMENT_RECEIPT,
      }),
      ...errors(
        'invalid plan',
        'unknown payment protocol',
        'cross-site request refused',
        'order not found',
        'already delivered',
        'rate limited',
        'internal error',
        'checkout unavailable',
      ),
      401: WRONG_PREIMAGE,
      402: CHALLENGES,
    },
  } as FastifySchema
}

const WRONG_PREIMAGE = answer(ErrorSchema, {
  name: 'WrongPreimage',
  description: 'The order of this credential is paid, and the preimage is wrong: nothing to pay.',
  headers: wwwAuthenticate('A scheme and a realm', 'Payment realm="mayfly"'),
})

const CHALLENGES = {
  'x-name': 'OneUrlChallenge',
  description: 'Pay the invoice, and repeat the request with the credential.',
  headers: wwwAuthenticate(
    'The Payment challenge, and the L402 challenge in a field line of its own',
    'Payment id="k2Vx...", realm="mayfly", method="lightning", intent="charge", request="eyJh..."',
  ),
  content: {
    'application/problem+json': { schema: OneUrlChallenge },
    'application/json': { schema: OneUrlL402Challenge },
  },
}
