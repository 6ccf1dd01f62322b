/** Schemas that several rooms share. The interface defines their names and bounds. */

import type { Static, TSchema } from 'typebox'
import type { TokenKind } from '../lib/ids.ts'
import { closed, orNull, Type } from '../lib/json-schema.ts'
import { PLAN_IDS, PRODUCT_NAMES } from '../lib/product-names.ts'
import { IDEMPOTENCY_KEY } from '../payment/keys.ts'
import { MAX_LIFE_SECONDS } from '../payment/provisioning.ts'
import { ERRORS, type Phrase } from '../protocol/errors.ts'
import { ERROR_HEADERS, STREAM } from './response-headers.ts'

export const PlanIdSchema = Type.Enum([...PLAN_IDS], { 'x-schema': 'PlanId' })
const ProductSchema = Type.Enum(PRODUCT_NAMES, { 'x-schema': 'Product' })
export const NetworkSchema = Type.Enum(['mainnet', 'regtest', 'signet'], { 'x-schema': 'Network' })
export const DateTime = Type.String({ format: 'date-time' })
export const DateTimeOrNull = orNull(DateTime)
const Count = (minimum: number) => Type.Integer({ minimum })
export const AtLeast0 = Count(0)
export const AtLeast1 = Count(1)
/** An integer from 1 that an operator may set up to `maximum`. */
export const UpTo = (maximum: number) => Type.Integer({ minimum: 1, maximum })

export const ErrorSchema = Type.Object(
  {
    error: Type.String({
      description:
        'What is wrong, in words that never change; docs/reference/errors.md says what to do',
      examples: ['invalid plan'],
    }),
    field: Type.Optional(
      Type.String({
        description: 'In a 400 or 401: the member or header that is wrong',
        examples: ['planId'],
      }),
    ),
    expected: Type.Optional(
      Type.String({
        description: 'In a 400 or 401: what it must be',
        examples: ['spark, standard or long'],
      }),
    ),
  },
  { 'x-schema': 'Error' },
)

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

/** The errors of a request whose body is JSON. */
export const BODY_ERRORS = [
  'invalid request body',
  'unsupported media type',
  'request too large',
  'request timeout',
] as const

/** The errors of a request that asks for what an order sold. */
export const ORDER_ERRORS = [
  'order not found',
  'order expired',
  'order refunded',
  'proof of payment required',
  'already delivered',
  'rate limited',
  'internal error',
  'checkout unavailable',
] as const

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
  about: {
    description: string
    headers?: object
    type?: string
    name?: string
    /** Of a body that is not JSON. */
    example?: string | object
  },
) {
  const { description, headers = {}, type = 'application/json', name, example } = about
  return {
    ...(name === undefined ? {} : { 'x-name': name }),
    description,
    headers,
    content: { [type]: { schema, ...(example === undefined ? {} : { example }) } },
  }
}

/** One event of a stream: readers of `text/event-stream` hold each event to its schema, not the text as a whole. */
const StreamEvent = Type.Object(
  {
    id: Type.Optional(Type.String({ description: 'What to send as Last-Event-ID' })),
    event: Type.String({ description: 'Its name' }),
    data: Type.String({ description: 'JSON' }),
  },
  { 'x-schema': 'StreamEvent' },
)

/** A stream of server-sent events (WHATWG HTML §9.2). */
export const streamed = (
  description: string,
  example: { id?: string; event: string; data: string },
) => answer(StreamEvent, { type: 'text/event-stream', headers: STREAM, description, example })

export const PlanSelection = Type.Object(
  { planId: PlanIdSchema },
  { 'x-schema': 'PlanSelection', additionalProperties: false, examples: [{ planId: 'spark' }] },
)

/** In a quote whose key another client has used as well. */
const ProofRequired = Type.Optional(
  Type.Literal(true, {
    'x-schema': 'ProofRequired',
    description:
      'Another client has used the Idempotency-Key: once paid, the capability is handed over to proof of the payment alone. Better: buy under a fresh UUIDv4, before paying',
  }),
)

/** The Idempotency-Key of a request. */
export const keyHeader = (description: string) =>
  Type.String({
    ...IDEMPOTENCY_KEY,
    description,
    examples: ['3f0c9a52-8d1e-4b67-9a4f-5e2b7c6d1a90'],
  })

export const Invoice = Type.String({
  description: 'The BOLT 11 invoice to pay. Check its amount before you pay',
  examples: ['lnbc1u1p5jxq...'],
})
export const PaymentHash = Type.String({
  description: 'Of the invoice: 64 hex digits, the SHA-256 of the preimage that paying it reveals',
  examples: ['0001020304050607080900010203040506070809000102030405060708090102'],
})
const Macaroon = Type.String({
  description: 'The L402 token of this order. With the preimage it is the credential',
  examples: ['AgEGbWF5Zmx5...'],
})
/** Until when an invoice can be paid. */
export const PayUntil = Type.String({
  format: 'date-time',
  description: 'The invoice can be paid until then',
})
/** Until when a capability works. */
export const WorksUntil = Type.String({
  format: 'date-time',
  description: 'It works until then, unless it is extended, used up or destroyed',
})
/** A token of a capability. @param description what its holder may do. */
export const token = (kind: TokenKind, description: string) =>
  Type.String({ description, examples: [`${kind}_0cLz3H5jW9NfXb2mQx7RkT...`] })

const quoteFields = {
  orderId: Type.String({
    description: 'Names the order in the poll. Until the capability is used it is a secret',
    examples: ['order_5jW9mNf2XbA7qRkT0cLz3H'],
  }),
  product: ProductSchema,
  planId: PlanIdSchema,
  amountSats: Type.Integer({ description: 'The price', examples: [100] }),
  priceSats: Type.Integer({
    description: 'The same as `amountSats`, for clients that look for this name',
    examples: [100],
  }),
  bolt11: Invoice,
  paymentHash: PaymentHash,
  expiresAt: PayUntil,
  network: NetworkSchema,
  proofRequired: ProofRequired,
}

export const PaymentQuote = Type.Object(quoteFields, { 'x-schema': 'PaymentQuote' })

const problemFields = {
  type: Type.String({
    description: 'The URI of the problem (RFC 9457)',
    examples: ['https://paymentauth.org/problems/payment-required'],
  }),
  title: Type.String({ examples: ['Payment Required'] }),
  lightningType: Type.Optional(
    Type.String({ description: 'The URI of the same problem in the draft of Lightning charges' }),
  ),
  status: Type.Literal(402),
  detail: Type.String({
    description: 'What to do, for people',
    examples: ['Pay the invoice and repeat the identical request with the credential.'],
  }),
  error: Type.String({
    description: 'The phrase of this error',
    examples: ['payment required'],
  }),
  challengeId: Type.String({ description: 'The `id` of `challenge`', examples: ['k2Vx...'] }),
}

const challengeFields = {
  id: Type.String({ examples: ['k2Vx...'] }),
  realm: Type.String({ examples: ['mayfly.example'] }),
  method: Type.Literal('lightning'),
  intent: Type.Literal('charge'),
  request: Type.String({
    description: '`request` below, as base64url of canonical JSON',
    examples: ['eyJhbW91bnQiOiIxMDAi...'],
  }),
  expires: PayUntil,
}

const chargeField = {
  request: Type.Object(
    {
      amount: Type.String({ description: 'In satoshis', examples: ['100'] }),
      currency: Type.Literal('sat'),
      description: Type.String({ examples: ['Mayfly CATCH spark'] }),
      methodDetails: Type.Object({
        invoice: Invoice,
        network: NetworkSchema,
        paymentHash: PaymentHash,
      }),
    },
    { description: 'What the challenge asks to pay' },
  ),
}
const digest = Type.String({
  description: 'The SHA-256 of the body that the paid request must have (RFC 9530)',
  examples: ['sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'],
})

const { orderId, bolt11, ...offerFields } = quoteFields
/** A purchase of one URL shows nothing that names its order, and has the invoice in the challenge alone. */
const challenged = {
  orderId: Type.Optional(orderId),
  bolt11: Type.Optional(bolt11),
  ...offerFields,
}

/**
 * The 402 of the Payment flow: a problem (RFC 9457), the challenge and the quote; of one URL with the L402 challenge too,
 * unless the client chose this one alone.
 */
export const PaymentAuthChallenge = Type.Object(
  {
    ...problemFields,
    challenge: Type.Object(
      // A purchase of one URL has a body only where it is sold.
      { ...challengeFields, digest: Type.Optional(digest) },
      { description: 'The parameters of `WWW-Authenticate: Payment`, to send back' },
    ),
    ...chargeField,
    macaroon: Type.Optional(Macaroon),
    invoice: Type.Optional(Invoice),
    ...challenged,
  },
  { 'x-schema': 'PaymentAuthChallenge' },
)

/** The 402 and the 401 of the L402 flow: the challenge and the quote. */
export const L402Challenge = Type.Object(
  {
    error: problemFields.error,
    scheme: Type.Literal('L402'),
    macaroon: Macaroon,
    invoice: Invoice,
    ...challenged,
  },
  { 'x-schema': 'L402Challenge' },
)

/** The 402 of the poll. */
export const PendingPayment = Type.Object(
  {
    settled: Type.Literal(false),
    expiresAt: PayUntil,
    proofRequired: ProofRequired,
  },
  { 'x-schema': 'PendingPayment' },
)

/** A purchase that is paid, with what was bought: one of these. */
export const settledPayment = (resources: TSchema[]) =>
  Type.Object(
    {
      settled: Type.Literal(true),
      resource: Type.Union(resources, { discriminator: { propertyName: 'product' } }),
    },
    { 'x-schema': 'SettledPayment' },
  )

/** A purchase of this product that is paid. */
export const settled = (resource: TSchema, name: string) =>
  Type.Object({ settled: Type.Literal(true), resource }, { 'x-schema': name })

/** An extension that is paid. */
export const SettledExtension = Type.Object(
  {
    settled: Type.Literal(true),
    extended: Type.Literal(true),
    expiresAt: Type.String({ format: 'date-time', description: 'The new end of the capability' }),
  },
  { 'x-schema': 'SettledExtension' },
)

/** The fields that every plan has. */
export const planFields = {
  planId: PlanIdSchema,
  priceSats: Type.Integer({ minimum: 1, examples: [100] }),
  durationLabel: Type.String({ description: 'How long it works', examples: ['24 hours'] }),
  bestFor: Type.String({ examples: ['Trying out a webhook'] }),
  available: Type.Boolean({ description: 'Whether it is on sale' }),
}

/**
 * The highest price of a plan: one bitcoin, which is also the limit of Mayfly's client. In msat it is far
 * below the largest safe integer in JSON.
 */
const MAX_PRICE_SATS = 100_000_000
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

export const NewToken = closed(
  'NewToken',
  'The new token. One to send or to ping with replaces the one before at once; an owner token with its first use',
  {
    kind: Type.Enum(['owner', 'ingest', 'ping'], { description: 'What the token allows' }),
    token: Type.String({ description: 'Shown once' }),
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
