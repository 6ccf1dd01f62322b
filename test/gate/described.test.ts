/** What GATE's description says of each operation, of which clients are generated. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aShop } from '../support/gate-app.ts'
import { type Operation, openapi } from '../support/openapi.ts'

const BEARER = [{ bearer: [] }]
const INTENT = 'intentId: Of the intent "gate_intent_9NfXb2mQx7RkT0cLz3H5jW"'
const PAID = 'Paid: the receipt lets one request in'
const UNPAID = 'Not paid, as far as anybody can tell'
const COMMON = { 429: 'rate limited', 500: 'internal error' }
const PROJECT = 'The project "gate_project_RkT0cLz3H5jW9NfXb2mQx7"'

const NAMED = [
  `x-gate-method?: If present, must be the intent's "POST"`,
  `x-gate-path?: If present, must be the intent's "/render/cat?size=2"`,
]

const OPERATIONS = {
  'post /api/gate/intents': {
    is: 'createIntent: Create or recover one payment intent, bound to one request',
    security: BEARER,
    takes: [
      'idempotency-key: Names this intent: a fresh UUIDv4 for each protected request "3f0c9a52-8d1e-4b67-9a4f-5e2b7c6d1a90"',
      `x-gate-project: ${PROJECT}`,
      'x-gate-route: The route of the project "render"',
      'x-gate-method: Of the protected request "POST"',
      'x-gate-path: Path and query of the protected request "/render/cat?size=2"',
      'x-payment-protocol?: Omitted: a quote. `payment`: a challenge "payment"',
      'x-gate-visitor?: The network of the visitor, `203.0.113.0/24` or `2001:db8:1::/48`: new intents are then limited by it, and else by project "203.0.113.0/24"',
    ],
    answers: {
      400: 'invalid binding · invalid idempotency key · idempotency key reused with a different request · unknown payment protocol · unsupported media type · request too large',
      401: 'invalid project capability',
      402: 'The quote of this request, or a challenge if that was asked for',
      403: 'no credits',
      408: 'request timeout',
      ...COMMON,
      503: 'checkout unavailable · service unavailable',
    },
  },
  'get /api/gate/intents/{intentId}': {
    is: 'pollIntent: Poll an intent; asks its provider where that can verify',
    security: BEARER,
    takes: [INTENT, ...NAMED],
    answers: {
      200: PAID,
      401: 'invalid project capability · intent mismatch',
      402: UNPAID,
      ...COMMON,
      503: 'service unavailable',
    },
  },
  'post /api/gate/intents/{intentId}/prove': {
    is: 'proveIntent: Prove the payment of an intent by its preimage',
    security: [...BEARER, { payment: [] }],
    takes: [
      INTENT,
      `x-gate-project: ${PROJECT} ^gate_project_[A-Za-z0-9_-]+$`,
      'x-gate-method?: Required with Authorization: Payment "POST"',
      'x-gate-path?: Required with Authorization: Payment "/render/cat?size=2" ^/',
    ],
    answers: {
      200: PAID,
      400: 'malformed proof · unsupported media type · request too large',
      401: 'invalid project capability · intent mismatch · wrong preimage',
      402: UNPAID,
      408: 'request timeout',
      ...COMMON,
      503: 'service unavailable',
    },
  },
  'post /api/gate/intents/{intentId}/give-back': {
    is: "giveBackReceipt: Give a receipt back: the project's server failed the request that it let in",
    security: BEARER,
    takes: [INTENT, ...NAMED],
    answers: {
      204: 'Done; no body.',
      400: 'invalid request body · unsupported media type · request too large',
      401: 'invalid project capability · intent mismatch',
      408: 'request timeout',
      409: 'give-back refused',
      ...COMMON,
      503: 'service unavailable',
    },
  },
  'get /.well-known/gate-jwks.json': {
    is: 'getGateKeys: The Ed25519 keys that verify GATE receipts',
    security: [],
    takes: [],
    answers: {
      200: 'A JWK set (RFC 7517, RFC 8037)',
      500: 'internal error',
      503: 'service unavailable',
    },
  },
}

test('the description has each operation with its credentials, its headers and every refusal, on a page of its own', async (t) => {
  const { url } = await aShop(t)
  const { paths } = await openapi({ url }, '/openapi-gate.json')
  const described = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => {
      assert.deepEqual(operation.tags, ['gate'])
      return [`${method} ${path}`, inLines(operation)]
    }),
  )
  assert.deepEqual(Object.fromEntries(described), OPERATIONS)
  assert.deepEqual((await openapi({ url })).paths, {})
})

/** A parameter with a question mark may be left out. Its example and its pattern stand at the end. */
const inLines = ({ operationId, summary, security, parameters, responses }: Operation) => ({
  is: `${operationId}: ${summary}`,
  security: security ?? [],
  takes: (parameters ?? []).map(({ name, required, description, example, schema }) => {
    const pattern = 'pattern' in schema ? ` ${schema.pattern}` : ''
    return `${name}${required ? '' : '?'}: ${description} ${JSON.stringify(example)}${pattern}`
  }),
  answers: Object.fromEntries(
    Object.entries(responses).map(([status, { description }]) => [status, description]),
  ),
})
