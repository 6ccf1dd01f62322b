/** The types of GATE's JSON bodies. */
import type { Static } from 'typebox'
import { DateTime, Invoice, NetworkSchema, PaymentHash, PayUntil } from '../http/schemas.ts'
import { named, Type } from '../lib/json-schema.ts'

export const VerificationKind = Type.Enum(['provider', 'preimage'])
export type VerificationKind = Static<typeof VerificationKind>

/** Names an intent in a path. */
export const intentId = Type.String({
  description: 'Of the intent',
  examples: ['gate_intent_9NfXb2mQx7RkT0cLz3H5jW'],
})

/** What the headers of GATE mean, with an example of each. */
export const gateHeaders = {
  route: { description: 'The route of the project', examples: ['render'] },
  method: { description: 'Of the protected request', examples: ['POST'] },
  path: {
    description: 'Path and query of the protected request',
    examples: ['/render/cat?size=2'],
  },
  project: {
    description: 'The project',
    examples: ['gate_project_RkT0cLz3H5jW9NfXb2mQx7'],
  },
}
const bound = {
  projectId: Type.String({ examples: gateHeaders.project.examples }),
  routeId: Type.String(gateHeaders.route),
  method: Type.String(gateHeaders.method),
  path: Type.String({
    description: 'With the query, as bound',
    examples: gateHeaders.path.examples,
  }),
  requestDigest: Type.String({
    examples: ['7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069'],
    description:
      'SHA-256, lower-case hex, of the canonical JSON of project, route, method, path and bodySha256',
  }),
  amountSats: Type.Integer({ minimum: 1, description: 'The price', examples: [21] }),
}

const quoteFields = {
  intentId,
  ...bound,
  recipient: Type.String({
    description: "The project's Lightning Address",
    examples: ['shop@example.com'],
  }),
  bolt11: Invoice,
  paymentHash: PaymentHash,
  expiresAt: PayUntil,
  network: NetworkSchema,
  settled: Type.Boolean({
    description: 'Whether its payment is proven already',
    examples: [false],
  }),
}

export const GateQuote = Type.Object(quoteFields, { 'x-schema': 'GateQuote' })
/**
 * The payment intent of a request: its BOLT 11 invoice over `amountSats` satoshis, payable until
 * `expiresAt` (RFC 3339).
 *
 * ```ts
 * const { bolt11, amountSats } = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
 * ```
 */
export type GateQuote = Static<typeof GateQuote>

export const GatePaymentChallenge = Type.Object(
  {
    type: Type.String({
      description: 'The URI of the problem (RFC 9457)',
      examples: ['https://paymentauth.org/problems/payment-required'],
    }),
    title: Type.String({ examples: ['Payment Required'] }),
    status: Type.Literal(402),
    detail: Type.String({ description: 'What to do, for people' }),
    error: Type.String({ description: 'The phrase of this error', examples: ['payment required'] }),
    challengeId: Type.String({ description: 'The `id` of `challenge`', examples: ['k2Vx...'] }),
    challenge: Type.Record(Type.String(), Type.String(), {
      description: 'The parameters of `WWW-Authenticate: Payment`, to send back',
      examples: [{ id: 'k2Vx...', realm: 'gate' }],
    }),
    request: Type.Object({
      amount: Type.String({ description: 'In satoshis', examples: ['21'] }),
      currency: Type.Literal('sat'),
      externalId: Type.String({
        description: 'The intent',
        examples: ['gate_intent_9NfXb2mQx7RkT0cLz3H5jW'],
      }),
      methodDetails: Type.Object({
        invoice: Invoice,
        network: NetworkSchema,
        paymentHash: PaymentHash,
      }),
    }),
    ...quoteFields,
  },
  { 'x-schema': 'GatePaymentChallenge' },
)
/**
 * A quote as a `Payment` challenge (draft-httpauth-payment-01), with the header decoded.
 *
 * ```ts
 * const amountOf = ({ request }: GatePaymentChallenge): string => request.amount // satoshis
 * ```
 */
export type GatePaymentChallenge = Static<typeof GatePaymentChallenge>

export const GatePending = named('GatePending', 'Not paid, as far as anybody can tell', {
  settled: Type.Literal(false),
  intentId,
  status: Type.Enum(['pending', 'proof_required', 'expired'], {
    description: '`proof_required`: nobody but the payer can prove the payment, by its preimage',
  }),
  verification: Type.Enum(['provider', 'preimage'], {
    description: 'Who can prove it: the provider of the Lightning Address, or the payer',
  }),
  expiresAt: PayUntil,
  error: Type.String({
    description: 'The phrase of this error',
    examples: ['payment not verified'],
  }),
})
/**
 * An intent without a known payment.
 *
 * ```ts
 * const outcome = await gate.poll(intentId)
 * if (!outcome.settled) console.log('ask again in a second')
 * ```
 */
export type GatePending = Static<typeof GatePending>

export const GateAuthorization = named(
  'GateAuthorization',
  'Paid: the receipt lets one request in',
  {
    settled: Type.Literal(true),
    intentId,
    receiptId: Type.String({
      description: 'Names the receipt, to give it back',
      examples: ['gate_intent_9NfXb2mQx7RkT0cLz3H5jW.0'],
    }),
    ...bound,
    paymentHash: PaymentHash,
    verifiedBy: VerificationKind,
    authorizedAt: DateTime,
    expiresAt: Type.String({ format: 'date-time', description: 'The receipt works until then' }),
    creditsRemaining: Type.Integer({ description: 'Of the project', examples: [99] }),
    receipt: Type.String({
      description: 'A compact JWS (RFC 7515), also in the header Gate-Receipt',
      examples: ['eyJhbGciOiJFZERTQSJ9...'],
    }),
  },
)
/**
 * A paid intent. Its receipt, a compact JWS, admits one request after it was verified.
 *
 * ```ts
 * const outcome = await gate.prove(intentId, preimage)
 * if (outcome.settled) await gate.verifyReceipt(outcome.receipt)
 * ```
 */
export type GateAuthorization = Static<typeof GateAuthorization>

export const GateProof = Type.Object(
  {
    preimage: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: '64 lower-case hex digits',
    }),
  },
  {
    'x-schema': 'GateProof',
    additionalProperties: false,
    examples: [{ preimage: '7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069' }],
  },
)
export type GateProof = Static<typeof GateProof>

/** The id of a receipt fits this length. */
export const GateGiveBack = Type.Object(
  {
    receiptId: Type.String({ minLength: 1, maxLength: 64, description: 'Of the authorization' }),
  },
  {
    'x-schema': 'GateGiveBack',
    additionalProperties: false,
    examples: [{ receiptId: 'gate_intent_9NfXb2mQx7RkT0cLz3H5jW.0' }],
  },
)
export type GateGiveBack = Static<typeof GateGiveBack>

export const GateJwks = named('GateJwks', 'A JWK set (RFC 7517, RFC 8037)', {
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String({
        description: 'The public key, base64url',
        examples: ['11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'],
      }),
      kid: Type.String({ description: 'Names the key in receipts', examples: ['k1'] }),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
    }),
  ),
})
export type GateJwks = Static<typeof GateJwks>
