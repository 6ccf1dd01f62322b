/** How the OpenAPI document describes a purchase of one URL. */
import type { FastifySchema } from 'fastify'
import type { Phrase } from './errors.ts'
import type { OneUrlRoute } from './paid-route.ts'
import { credentialHeader, nameOf, offersOf, protocolHeader, settledAnswer } from './paid-schema.ts'
import { wwwAuthenticate } from './response-headers.ts'
import {
  answer,
  ErrorSchema,
  errors,
  OneUrlChallenge,
  OneUrlL402Challenge,
  PlanIdSchema,
} from './schemas.ts'
import { Type } from './type.ts'

/**
 * Each method of an address, and of its twin with `/l402` behind it. Only GET is announced: a registry that
 * probes each announced operation must stay below the limit on new orders.
 */
export function oneUrlSchema(
  route: OneUrlRoute,
  { method, isL402 }: { method: 'GET' | 'HEAD' | 'POST'; isL402: boolean },
): FastifySchema {
  const offers = offersOf(route)
  const isAnnounced = method === 'GET' && !isL402 && offers.length > 0
  return {
    tags: ['payments'],
    isLinked: isL402,
    operationId: `${PREFIXES[method]}${nameOf(route)}ByUrl${isL402 ? 'WithL402' : ''}`,
    summary: `${route.summary} by one URL${isL402 ? ' that shows L402 alone' : ''}${WHAT[method]}`,
    security: isL402 ? [{}, { l402: [] }] : [{}, { payment: [] }, { l402: [] }],
    ...(isAnnounced ? { 'x-payment-info': { offers } } : {}),
    params: planParams(route, isAnnounced),
    headers: Type.Object({
      ...(isL402 ? {} : { 'x-payment-protocol': protocolHeader('Shows this challenge alone') }),
      authorization: credentialHeader,
    }),
    ...(method === 'POST' ? { requestBody: NOTHING } : {}),
    response: {
      200: settledAnswer(route),
      ...errors(
        'invalid plan',
        'unknown payment protocol',
        ...(method === 'POST' ? BODY_ERRORS : []),
        'cross-site request refused',
        'network refused',
        'simulator is local',
        'order not found',
        'already delivered',
        'rate limited',
        'internal error',
        'checkout unavailable',
        'sold out',
      ),
      401: WRONG_PREIMAGE,
      402: isL402 ? L402_ALONE : CHALLENGES,
    },
  } as FastifySchema
}

const PREFIXES = { GET: 'buy', HEAD: 'headBuy', POST: 'postBuy' }
const WHAT = { GET: '', HEAD: ', to see the challenge alone', POST: ', by POST' }

const NOTHING = {
  'x-name': 'Nothing',
  content: {
    'application/json': { schema: Type.Object({}, { additionalProperties: false }), example: {} },
  },
}
const BODY_ERRORS: Phrase[] = [
  'invalid request body',
  'unsupported media type',
  'request too large',
  'request timeout',
]

/**
 * Registries probe the address of the example, so its plan must be on sale. They do not follow a reference to a
 * shared parameter, so the one of an announced operation has words of its own.
 */
function planParams(route: OneUrlRoute, isAnnounced: boolean) {
  const example = PlanIdSchema.enum.find((planId) => route.plan(planId) !== null)
  const product = route.product.toUpperCase()
  return Type.Object({
    planId: Type.Enum(PlanIdSchema.enum, {
      description: isAnnounced ? `A plan of ${product}` : `The plan of ${product}`,
      examples: [example ?? 'spark'],
    }),
  })
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

const L402_ALONE = answer(OneUrlL402Challenge, {
  name: 'OneUrlL402Challenge',
  description: 'Pay the invoice, and repeat the request with the credential.',
  headers: wwwAuthenticate(
    'The L402 challenge',
    'L402 macaroon="AgEG...", invoice="lnbcrt1u1p..."',
  ),
})
