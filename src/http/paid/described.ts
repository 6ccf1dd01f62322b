/** How the OpenAPI document describes a paid route. */

import type { FastifySchema } from 'fastify'
import { only, Type } from '../../lib/json-schema.ts'
import { memoOf } from '../../payment/order.ts'
import { wwwAuthenticate } from '../response-headers.ts'
import {
  answer,
  BODY_ERRORS,
  ErrorSchema,
  errors,
  keyHeader,
  L402Challenge,
  ORDER_ERRORS,
  PaymentAuthChallenge,
  PaymentQuote,
  PlanIdSchema,
  settled,
} from '../schemas.ts'
import type { PaidRoute } from './route.ts'

export function paidRouteSchema(route: PaidRoute): FastifySchema {
  const { settled = settledAnswer(route), ...documented } = route.described ?? {}
  return {
    tags: ['payments'],
    operationId: `buy${nameOf(route)}`,
    ...documented,
    summary: route.summary,
    description: howToBuy(route),
    consumes: [route.contentType],
    security: [{}, { payment: [] }, { l402: [] }],
    headers: Type.Object({
      'idempotency-key': keyHeader(
        'Names this purchase: a fresh UUIDv4 for each one intended, made before paying. One key is one order, from wherever it comes; if another client is shown its quote, it is delivered to proof of payment alone.',
      ),
      'x-payment-protocol': protocolHeader('Omitted: the native flow'),
      'accept-payment': Type.Optional(
        Type.String({
          description: '`lightning/charge` selects the Payment flow too',
          examples: ['lightning/charge'],
        }),
      ),
      'accept-authenticate': Type.Optional(
        Type.String({ description: '`L402` selects the L402 flow too', examples: ['L402'] }),
      ),
      authorization: credentialHeader,
      'payment-preimage': paymentPreimageHeader,
      ...route.headerSchemas,
    }),
    body: route.bodySchema,
    response: {
      200: settled,
      ...errors(
        'invalid plan',
        'invalid request body',
        'invalid idempotency key',
        'idempotency key reused with a different request',
        'unknown payment protocol',
        'invalid query',
        'unsupported media type',
        'request too large',
        'request timeout',
        ...ORDER_ERRORS,
        'sold out',
        'simulator is local',
        // Whoever extends has shown the owner token.
        ...(route.extendsId ? [] : (['network refused'] as const)),
        ...(route.phrases ?? []),
      ),
      401: INVALID_CREDENTIAL,
      402: PAYMENT_REQUIRED,
    },
  } as FastifySchema
}

/** Of a route that reads it: proof of payment for clients without a wallet protocol. */
export const paymentPreimageHeader = Type.Optional(
  Type.String({
    description:
      '64 hex digits: the preimage that the wallet got for the payment. Together with the key of the order it proves the payment',
    examples: ['7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069'],
  }),
)

/** What happens next depends on how the order can be polled. */
const howToBuy = ({ extendsId }: PaidRoute): string =>
  `Without a credential the answer is 402 with an invoice, and nothing is charged. Pay it, then either poll ${extendsId ? '`/api/extensions/{orderId}`' : '`/api/payments/{orderId}`'}, or repeat the same request with its credential. The same key and body are always the same order.`

/** `CATCH` is `Catch` in the names of operations and schemas. */
export const nameOf = ({ product }: Pick<PaidRoute, 'product'>): string =>
  product.slice(0, 1).toUpperCase() + product.slice(1)

/** @param description what happens without it, or with it. */
const protocolHeader = (description: string) =>
  Type.Optional(Type.Enum(['payment', 'l402'], { description, examples: ['l402'] }))

const credentialHeader = Type.Optional(
  Type.String({
    description:
      'On the paid repeat: `Payment <base64url credential>` or `L402 <macaroon>:<preimage>`',
    examples: ['L402 AgEG...:7f83b165...'],
  }),
)

/** The 200 of every purchase. */
const settledAnswer = (route: Pick<PaidRoute, 'product' | 'resourceSchema'>) =>
  answer(settled(route.resourceSchema, `Settled${nameOf(route)}`), {
    description: 'Paid: the capability. Save it; it is not shown again after its first use.',
    headers: PAYMENT_RECEIPT,
  })

export const PAYMENT_RECEIPT = {
  'Payment-Receipt': {
    description: 'With a Payment credential: its receipt, base64url of canonical JSON',
    schema: Type.String(),
    example: 'eyJtZXRob2QiOiJsaWdodG5pbmciLCJzdGF0dXMiOiJzdWNjZXNzIn0',
  },
}

const INVALID_CREDENTIAL = answer(
  Type.Union([L402Challenge, ErrorSchema], { 'x-schema': 'RefusedCredential' }),
  {
    name: 'InvalidCredential',
    description:
      'invalid L402 credential · invalid payment credential, for an order that is paid already',
    headers: wwwAuthenticate(
      'The L402 challenge; for an order that is paid already a scheme and a realm, and nothing to pay',
      'L402 macaroon="AgEG...", invoice="lnbcrt1u1p..."',
    ),
  },
)

/** The L402 challenge stands first: a generated client takes the first that fits, and a quote is part of both. */
const PAYMENT_REQUIRED = {
  'x-name': 'PaymentRequired',
  description:
    'Pay the invoice. Native: a quote, then poll the order. Payment and L402: a challenge, then repeat this request with the credential.',
  headers: wwwAuthenticate(
    'The Payment or the L402 challenge; none in the native flow',
    'Payment id="k2Vx...", realm="mayfly", method="lightning", intent="charge", request="eyJh..."',
  ),
  content: {
    'application/json': {
      schema: Type.Union([L402Challenge, PaymentQuote], { 'x-schema': 'UnpaidOrder' }),
    },
    'application/problem+json': { schema: PaymentAuthChallenge },
  },
}

/** What each plan costs, for registries (draft-payment-discovery-01). Only the 402 is binding. */
function offersOf({
  product,
  plan,
}: Pick<PaidRoute, 'product' | 'plan'>): Record<string, string>[] {
  return PlanIdSchema.enum.flatMap((planId) => {
    const terms = plan(planId)
    return terms
      ? [
          {
            intent: 'charge',
            method: 'lightning',
            amount: String(terms.priceSats),
            currency: 'sat',
            description: memoOf({ product, planId }),
          },
        ]
      : []
  })
}

// How the OpenAPI document describes a purchase of one URL.

/**
 * Each method of an address, and of its twin with `/l402` behind it. Only GET is announced: a registry that
 * probes each announced operation must stay below the limit on new orders, and sends no bytes that could be sold.
 */
export function oneUrlSchema(
  route: PaidRoute,
  {
    method,
    isL402,
    upload,
  }: { method: 'GET' | 'HEAD' | 'POST'; isL402: boolean; upload: PaidRoute | undefined },
): FastifySchema {
  const offers = offersOf(route)
  // What is bought with a body has no other method.
  const as = upload ? 'GET' : method
  const isAnnounced = method === 'GET' && !isL402 && offers.length > 0
  return {
    tags: ['payments'],
    isInWholeOnly: isL402,
    operationId: `${PREFIXES[as]}${nameOf(route)}ByUrl${isL402 ? 'WithL402' : ''}`,
    summary: `${route.summary} by one URL${isL402 ? ' that shows L402 alone' : ''}${WHAT[as]}`,
    description: upload ? ABOUT_UPLOAD : ABOUT[method],
    security: isL402 ? [{}, { l402: [] }] : [{}, { payment: [] }, { l402: [] }],
    ...(isAnnounced ? { 'x-payment-info': { offers } } : {}),
    params: planParams(route, isAnnounced),
    headers: Type.Object({
      ...(isL402 ? {} : { 'x-payment-protocol': protocolHeader('Shows this challenge alone') }),
      authorization: credentialHeader,
      ...upload?.headerSchemas,
    }),
    ...(as === 'POST' ? { requestBody: NOTHING } : {}),
    ...(upload ? { body: upload.bodySchema, consumes: [upload.contentType] } : {}),
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
        ...(upload?.phrases ?? []),
      ),
      401: WRONG_PREIMAGE,
      402: isL402 ? L402_ALONE : CHALLENGES,
    },
  } as FastifySchema
}

const PREFIXES = { GET: 'buy', HEAD: 'headBuy', POST: 'postBuy' }
const ABOUT = {
  GET: 'For clients that pay by themselves: it needs no header and no key. 402 has the challenge; the same request with its credential is 200. Each request without a credential is a new order, so keep the credential: it works until the first use of what it bought.',
  HEAD: 'Makes an order, too. It delivers nothing, whatever it proves.',
  POST: 'The same as GET, for clients that only pay a POST.',
}
const ABOUT_UPLOAD =
  'For clients that pay by themselves: it needs no header and no key. 402 has the challenge; the same request, with the same bytes and its credential, is 200. Each request without a credential is a new order, so keep both: they work until the first use of what they bought.'
const WHAT = { GET: '', HEAD: ', to see the challenge alone', POST: ', by POST' }

const NOTHING = {
  content: {
    'application/json': { schema: only({}), example: {} },
  },
}

/**
 * Registries probe the address of the example, so its plan must be on sale. They do not follow a reference to a
 * shared parameter, so the one of an announced operation has words of its own.
 */
function planParams(route: PaidRoute, isAnnounced: boolean) {
  const example = PlanIdSchema.enum.find((planId) => route.plan(planId) !== null)
  const product = route.product.toUpperCase()
  return Type.Object({
    planId: Type.Enum(PlanIdSchema.enum, {
      'x-schema': 'PlanId',
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
    'application/problem+json': { schema: PaymentAuthChallenge },
    'application/json': { schema: L402Challenge },
  },
}

const L402_ALONE = answer(L402Challenge, {
  name: 'OneUrlL402Challenge',
  description: 'Pay the invoice, and repeat the request with the credential.',
  headers: wwwAuthenticate(
    'The L402 challenge',
    'L402 macaroon="AgEG...", invoice="lnbcrt1u1p..."',
  ),
})
