/** The types of GATE's JSON bodies. */
import type { Static } from 'typebox'
import { AtLeast1, DateTime, NetworkSchema } from '../http/schemas.ts'
import { Type } from '../http/type.ts'

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
  projectId: Type.String(),
  routeId: Type.String(),
  method: Type.String(),
  path: Type.String({ description: 'With the query, as bound' }),
  requestDigest: Type.String({
    description:
      'SHA-256, lower-case hex, of the canonical JSON of project, route, method, path and bodySha256',
  }),
  amountSats: AtLeast1,
}

const quoteFields = {
  intentId: Type.String(),
  ...bound,
  recipient: Type.String({ description: "The project's Lightning Address" }),
  bolt11: Type.String(),
  paymentHash: Type.String(),
  expiresAt: DateTime,
  network: NetworkSchema,
  settled: Type.Boolean(),
}

export const GateQuote = Type.Object(quoteFields)
/**
 * The payment intent of a request: its BOLT 11 invoice over `amountSats` satoshis, payable until
 * `expiresAt` (RFC 3339).
 *
 * ```ts
 * const { bolt11, amountSats } = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
 * ```
 */
export type GateQuote = Static<typeof GateQuote>

export const GatePaymentChallenge = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Literal(402),
  detail: Type.String(),
  error: Type.String(),
  challengeId: Type.String(),
  challenge: Type.Record(Type.String(), Type.String()),
  request: Type.Object({
    amount: Type.String(),
    currency: Type.Literal('sat'),
    externalId: Type.String({ description: 'The intent' }),
    methodDetails: Type.Object({
      invoice: Type.String(),
      network: NetworkSchema,
      paymentHash: Type.String(),
    }),
  }),
  ...quoteFields,
})
/**
 * A quote as a `Payment` challenge (draft-httpauth-payment-01), with the header decoded.
 *
 * ```ts
 * const amountOf = ({ request }: GatePaymentChallenge): string => request.amount // satoshis
 * ```
 */
export type GatePaymentChallenge = Static<typeof GatePaymentChallenge>

export const GatePending = Type.Object(
  {
    settled: Type.Literal(false),
    intentId: Type.String(),
    status: Type.Enum(['pending', 'proof_required', 'expired']),
    verification: VerificationKind,
    expiresAt: DateTime,
    error: Type.String(),
  },
  { description: 'Not paid, as far as anybody can tell' },
)
/**
 * An intent without a known payment.
 *
 * ```ts
 * const outcome = await gate.poll(intentId)
 * if (!outcome.settled) console.log('ask again in a second')
 * ```
 */
export type GatePending = Static<typeof GatePending>

export const GateAuthorization = Type.Object(
  {
    settled: Type.Literal(true),
    intentId: Type.String(),
    receiptId: Type.String(),
    ...bound,
    paymentHash: Type.String(),
    verifiedBy: VerificationKind,
    authorizedAt: DateTime,
    expiresAt: DateTime,
    creditsRemaining: Type.Integer(),
    receipt: Type.String(),
  },
  { description: 'Paid: the receipt lets one request in' },
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
    additionalProperties: false,
    examples: [{ preimage: '7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069' }],
  },
)
export type GateProof = Static<typeof GateProof>

/** A receipt's id is a UUID, which fits this length. */
export const GateGiveBack = Type.Object(
  {
    receiptId: Type.String({ minLength: 1, maxLength: 64 }),
    isUnused: Type.Optional(
      Type.Boolean({
        description: 'It expired before it let a request in. Does not count as one of the two',
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ receiptId: '5b1d6f0c-2f4e-4a7b-8c9d-0e1f2a3b4c5d' }],
  },
)
export type GateGiveBack = Static<typeof GateGiveBack>

export const GateJwks = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Type.Literal('OKP'),
        crv: Type.Literal('Ed25519'),
        x: Type.String(),
        kid: Type.String(),
        alg: Type.Literal('EdDSA'),
        use: Type.Literal('sig'),
      }),
    ),
  },
  { description: 'A JWK set (RFC 7517, RFC 8037)' },
)
export type GateJwks = Static<typeof GateJwks>
