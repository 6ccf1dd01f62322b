/** Schemas that several rooms share. The interface defines their names and bounds. */

import type { Static, TSchema } from 'typebox'
import { PLAN_IDS, PRODUCT_NAMES } from '../lib/product-names.ts'
import { MAX_LIFE_SECONDS } from '../payment/provisioning.ts'
import { ERRORS, type Phrase } from './errors.ts'
import { ERROR_HEADERS } from './response-headers.ts'
import { Type } from './type.ts'

export const PlanIdSchema = Type.Enum([...PLAN_IDS])
const ProductSchema = Type.Enum(PRODUCT_NAMES)
export const NetworkSchema = Type.Enum(['mainnet', 'regtest', 'signet'])
export const DateTime = Type.String({ format: 'date-time' })
export const DateTimeOrNull = Type.Union([DateTime, Type.Null()])
const Count = (minimum: number) => Type.Integer({ minimum })
export const AtLeast0 = Count(0)
export const AtLeast1 = Count(1)
/** An integer from 1 that an operator may set up to `maximum`. */
export const UpTo = (maximum: number) => Type.Integer({ minimum: 1, maximum })

export const ErrorSchema = Type.Object({
  error: Type.String({ description: 'A phrase of docs/reference/errors.md; it never changes' }),
  field: Type.Optional(
    Type.String({ description: 'In a 400 or 401: the member or header at fault' }),
  ),
  expected: Type.Optional(Type.String({ description: 'In a 400 or 401: what it must be' })),
})

type Answers = Record<string, ReturnType<typeof answer>>

/**
 * The error answers of an operation, for its `response`, by status, with their phrases and headers. Many operations
 * have the same, which are made once.
 */
export function errors(...phrases: Phrase[]): Answers {
  const list = phrases.join()
  const made = ERROR_ANSWERS.get(list) ?? errorsOf(phrases)
  ERROR_ANSWERS.set(list, made)
  return made
}

const ERROR_ANSWERS = new Map<string, Answers>()

function errorsOf(phrases: Phrase[]): Answers {
  const described = new Map<number, string>()
  // An operation that needs the store may find it unavailable.
  const isStored = phrases.includes('internal error')
  for (const phrase of isStored ? [...phrases, 'service unavailable' as const] : phrases) {
    const { status } = ERRORS[phrase]
    const others = described.get(status)
    described.set(status, others === undefined ? phrase : `${others} · ${phrase}`)
  }
  return Object.fromEntries(
    [...described].map(([status, description]) => [
      status,
      answer(ErrorSchema, { description, headers: ERROR_HEADERS[status] ?? {} }),
    ]),
  )
}

/** An answer that says more than its schema, or is not JSON. `name` is for answers of several operations. */
export function answer(
  schema: TSchema,
  about: { description: string; headers?: object; type?: string; name?: string },
) {
  const { description, headers = {}, type = 'application/json', name } = about
  return {
    ...(name === undefined ? {} : { 'x-name': name }),
    ...{ description, headers },
    content: { [type]: { schema } },
  }
}

export const PlanSelection = Type.Object(
  { planId: PlanIdSchema },
  { additionalProperties: false, examples: [{ planId: 'spark' }] },
)

/** In a quote whose key another client has used as well. */
export const ProofRequired = Type.Optional(
  Type.Literal(true, {
    description:
      'Another client has used the Idempotency-Key: once paid, the capability is handed over to proof of the payment alone. Better: buy under a fresh UUIDv4, before paying',
  }),
)

/** The Idempotency-Key of the examples. */
export const KEY_EXAMPLE = '3f0c9a52-8d1e-4b67-9a4f-5e2b7c6d1a90'

const quoteFields = {
  orderId: Type.String(),
  product: ProductSchema,
  planId: PlanIdSchema,
  amountSats: Type.Integer(),
  bolt11: Type.String(),
  paymentHash: Type.String(),
  expiresAt: DateTime,
  network: NetworkSchema,
  proofRequired: ProofRequired,
}

export const PaymentQuote = Type.Object(quoteFields)

const problemFields = {
  type: Type.String(),
  title: Type.String(),
  lightningType: Type.Optional(Type.String()),
  status: Type.Literal(402),
  detail: Type.String(),
  error: Type.String(),
  challengeId: Type.String(),
}

const challengeFields = {
  id: Type.String(),
  realm: Type.String(),
  method: Type.Literal('lightning'),
  intent: Type.Literal('charge'),
  request: Type.String(),
  expires: Type.String(),
}

const chargeField = {
  request: Type.Object({
    amount: Type.String(),
    currency: Type.Literal('sat'),
    description: Type.String(),
    methodDetails: Type.Object({
      invoice: Type.String(),
      network: NetworkSchema,
      paymentHash: Type.String(),
    }),
  }),
}

/** The 402 of the Payment flow: a problem (RFC 9457), the challenge and the quote. */
export const PaymentAuthChallenge = Type.Object({
  ...problemFields,
  challenge: Type.Object({ ...challengeFields, digest: Type.String() }),
  ...chargeField,
  ...quoteFields,
})

const { orderId: _, bolt11: __, proofRequired: ___, ...offerFields } = quoteFields

/** The 402 of a purchase of one URL: the Payment challenge and, unless the client chose it alone, the L402 one. */
export const OneUrlChallenge = Type.Object({
  ...problemFields,
  challenge: Type.Object(challengeFields),
  ...chargeField,
  macaroon: Type.Optional(Type.String()),
  invoice: Type.Optional(Type.String()),
  ...offerFields,
})

/** The 402 of a purchase of one URL that shows L402 alone. */
export const OneUrlL402Challenge = Type.Object({
  error: Type.String(),
  scheme: Type.Literal('L402'),
  macaroon: Type.String(),
  invoice: Type.String(),
  ...offerFields,
})

/** The 402 and the 401 of the L402 flow: the challenge and the quote. */
export const L402Challenge = Type.Object({
  error: Type.String(),
  scheme: Type.Literal('L402'),
  macaroon: Type.String(),
  invoice: Type.String(),
  ...quoteFields,
})

/** The 402 of the poll. */
export const PendingPayment = Type.Object({
  settled: Type.Literal(false),
  expiresAt: DateTime,
  proofRequired: ProofRequired,
})

/** A purchase that is paid, with what was bought: one of these. */
export const settledPayment = (resources: TSchema[]) =>
  Type.Object(
    {
      settled: Type.Literal(true),
      // No `discriminator`: `product` is a constant in each, and without a mapping its values would be names of schemas.
      resource: Type.Union(resources),
    },
    { 'x-schema': 'SettledPayment' },
  )

/** A purchase of this product that is paid. */
export const settled = (resource: TSchema, name: string) =>
  Type.Object({ settled: Type.Literal(true), resource }, { 'x-schema': name })

/** An extension that is paid. */
export const Extended = Type.Object(
  { settled: Type.Literal(true), extended: Type.Literal(true), expiresAt: DateTime },
  { 'x-schema': 'Extended' },
)

/** The fields that every plan has. */
export const planFields = {
  planId: PlanIdSchema,
  priceSats: AtLeast1,
  durationLabel: Type.String(),
  bestFor: Type.String(),
  available: Type.Boolean(),
}

/**
 * The highest price of a plan: one bitcoin, which is also the limit of Mayfly's client. In msat it is far
 * below the largest safe integer in JSON.
 */
export const MAX_PRICE_SATS = 100_000_000
/** The largest count in a plan. Both engines and JSON represent sums of such counts exactly. */
export const MAX_PLAN_COUNT = 1_000_000_000

/**
 * The fields that every plan has in the configuration. Only configured plans are checked against the maximums,
 * because an order keeps the plan that it was quoted with.
 */
export const configuredPlanFields = {
  ...planFields,
  priceSats: UpTo(MAX_PRICE_SATS),
  durationSeconds: UpTo(MAX_LIFE_SECONDS),
}

export const NoContent = Type.Null({ description: 'Done; no body.' })

/** The schemas of this room by their names in the OpenAPI document. */
export const SHARED_SCHEMAS = {
  Error: ErrorSchema,
  PlanId: PlanIdSchema,
  Product: ProductSchema,
  Network: NetworkSchema,
  ProofRequired,
  PlanSelection,
  PaymentQuote,
  PaymentAuthChallenge,
  L402Challenge,
  OneUrlChallenge,
  OneUrlL402Challenge,
  PendingPayment,
}

export const NewToken = Type.Object(
  {
    kind: Type.Enum(['owner', 'ingest', 'ping'], { description: 'What the token allows' }),
    token: Type.String({ description: 'Shown once' }),
  },
  {
    additionalProperties: false,
    description:
      'The new token. One to send or to ping with replaces the one before at once; an owner token with its first use',
  },
)
/**
 * A new token of a capability, in place of the one before. Save it before anything else. One to send or to ping with
 * replaces the one before at once. An owner token does so with its first use, so that a lost answer locks nobody out.
 *
 * ```ts
 * const { token } = await inbox.rotateToken('ingest')
 * ```
 */
export type NewToken = Static<typeof NewToken>
