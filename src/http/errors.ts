/** The catalogue of errors. The phrase is the contract: stable, and never an echo of input. */

type Entry = {
  status: number
  /** What happened, where the money is, and what the caller can do now. For docs/errors.md. */
  advice: string
}

export const ERRORS = {
  'invalid plan': {
    status: 400,
    advice:
      'The plan is unknown or not on sale. GET /api/catalog lists what is. Nothing was charged.',
  },
  'invalid request body': {
    status: 400,
    advice: 'The body is not what the operation takes: JSON of the documented shape, nothing more.',
  },
  'unsupported media type': {
    status: 400,
    advice: 'Send the documented Content-Type, without Content-Encoding. Nothing was charged.',
  },
  'request too large': {
    status: 400,
    advice: 'The body or the headers are above their limit. Nothing was stored.',
  },
  'invalid idempotency key': {
    status: 400,
    advice:
      'Send one Idempotency-Key of 8 to 128 visible ASCII characters; a fresh UUIDv4 is best.',
  },
  'idempotency key reused with a different request': {
    status: 400,
    advice: 'This key names another purchase. Use a new key for each purchase you intend.',
  },
  'unknown payment protocol': {
    status: 400,
    advice: 'Leave X-Payment-Protocol out for the native flow, or send a documented value.',
  },
  'invalid query': {
    status: 400,
    advice: 'A query parameter is unknown, repeated or out of bounds.',
  },
  'invalid settings': {
    status: 400,
    advice:
      'A setting is unknown, of the wrong type or out of bounds, or the grace is below the minimum of the plan. Nothing was changed.',
  },
  'invalid ciphertext': {
    status: 400,
    advice: 'The body must be the encrypted bytes, 30 or more of them. Nothing was charged.',
  },
  'ciphertext too large': {
    status: 400,
    advice: "The body is above the plan's maxCiphertextBytes. Nothing was stored or charged.",
  },
  'invalid read limit': {
    status: 400,
    advice:
      "X-Whisper-Read-Limit is an integer from 1 to the plan's readLimit. Nothing was charged.",
  },
  'invalid reveal time': {
    status: 400,
    advice:
      "X-Whisper-Reveal-At is ISO 8601 with an offset, in the future and inside the plan's lifetime. Nothing was charged.",
  },
  'invalid binding': {
    status: 400,
    advice:
      'The route is unknown, or method and path do not match it, or the path is one that servers read differently. No invoice was made.',
  },
  'malformed proof': {
    status: 400,
    advice:
      'The body is {"preimage": "<64 lower-case hex digits>"} and nothing else. Nothing was spent; prove again.',
  },
  'invoice expired': {
    status: 400,
    advice: 'The simulator does not pay an invoice after its expiry.',
  },
  unauthorized: {
    status: 401,
    advice: 'Send `Authorization: Bearer <token>` with the token of the right kind.',
  },
  'catch unavailable': {
    status: 401,
    advice: 'The inbox is unknown, suspended, exhausted, expired or destroyed. Nothing was stored.',
  },
  'invalid project capability': {
    status: 401,
    advice:
      "The GATE project's capability is missing, wrong, replaced or suspended, or another project is named. Nothing was spent.",
  },
  'intent mismatch': {
    status: 401,
    advice:
      'No such intent of this project, or it was made for another request, or the credential is for another intent. Nothing was spent; do not pay again.',
  },
  'wrong preimage': {
    status: 401,
    advice:
      "This intent is paid and authorized, and this preimage is not its own. Nothing was spent; do not pay again: prove with the preimage of the intent's invoice.",
  },
  'payment not verified': {
    status: 402,
    advice:
      'The payment of this intent is not proven yet. Whoever has paid keeps the claim: poll again, or prove with the preimage.',
  },
  'payment required': {
    status: 402,
    advice:
      'Pay the invoice of the challenge, then repeat the identical request with the credential.',
  },
  'invalid payment credential': {
    status: 402,
    advice:
      "The Payment credential is malformed, forged, or another request's. Nothing was spent; the challenge shown is this request's own.",
  },
  'invalid L402 credential': {
    status: 401,
    advice:
      'The L402 credential is malformed, forged, or its preimage is wrong. Nothing was spent.',
  },
  'no credits': {
    status: 403,
    advice:
      'The GATE project has no credits left, so no new intent is made. Paid intents are still honoured. Ask the operator for more.',
  },
  'order not found': {
    status: 404,
    advice:
      'No order has this id, or the Idempotency-Key sent along is not the one it was opened with. If you have paid, do not pay again: the operator can make the order good from the payment hash of its invoice.',
  },
  'order expired': {
    status: 404,
    advice:
      'The invoice was not paid in time, or the capability was never collected. Buy anew with a new key.',
  },
  'order refunded': {
    status: 404,
    advice:
      'It was paid and could not be provisioned, and the operator has paid it back. Nothing is owed. Buy anew with a new key.',
  },
  'proof of payment required': {
    status: 404,
    advice:
      'The order is paid, and its Idempotency-Key is one that others could guess, so it is handed over to proof of the payment alone. Do not pay again: repeat the request with `Payment-Preimage: <64 hex digits>`, the preimage that your wallet shows for the payment, or with the Payment or L402 credential. Where the wallet shows none, the operator can deliver it. Buy under a fresh UUIDv4 to need none.',
  },
  'already delivered': {
    status: 404,
    advice:
      'The capability was handed out and is not repeated. Nothing is owed; do not pay again for the same purchase.',
  },
  'not found': {
    status: 404,
    advice: 'Unknown, expired, exhausted, destroyed, or not yours: these look the same on purpose.',
  },
  'method not allowed': { status: 405, advice: 'The Allow header lists what this path takes.' },
  'give-back refused': {
    status: 409,
    advice:
      'This receipt is not the newest of its intent, or the intent was given back twice before. Nothing was changed. A payment that stays unserved is noted for the operator; its payer owes nothing.',
  },
  'request timeout': {
    status: 408,
    advice: 'The request did not arrive in time. Nothing was stored.',
  },
  'not revealed': {
    status: 425,
    advice: 'Scheduled for revealAt. Wait for Retry-After seconds; no read was spent.',
  },
  'rate limited': { status: 429, advice: 'Wait for Retry-After seconds. Nothing was spent.' },
  'internal error': {
    status: 500,
    advice:
      'Our mistake. Quote X-Request-Id to the operator. A paid order is kept: poll or repeat it.',
  },
  'service unavailable': {
    status: 503,
    advice:
      'The store is away or full for the moment. Retry after Retry-After, with the same Idempotency-Key: a paid order is kept.',
  },
  'payment not honoured': {
    status: 503,
    advice:
      'The payment of this GATE intent is proven, and cannot be honoured now. It is noted for the operator. Do not pay again; prove again later.',
  },
  'not ready': {
    status: 503,
    advice:
      'The answer of GET /ready alone, for load balancers: the store or the node is away, or the service is stopping.',
  },
  'checkout unavailable': {
    status: 503,
    advice:
      'The Lightning node cannot take money now. No invoice was made; a paid order is kept. Retry after Retry-After.',
  },
} as const satisfies Record<string, Entry>

export type Phrase = keyof typeof ERRORS

/** An error that is the caller's to know. Anything else that is thrown is our own bug. */
export class Problem extends Error {
  override name = 'Problem'
  readonly phrase: Phrase
  readonly status: number
  readonly headers: Record<string, string>
  constructor(phrase: Phrase, headers: Record<string, string>) {
    super(phrase)
    this.phrase = phrase
    this.status = ERRORS[phrase].status
    this.headers = headers
  }
}

/** `throw problem('order expired')`. Headers belong to this one answer. */
export function problem(phrase: Phrase, headers: Record<string, string> = {}): Problem {
  return new Problem(phrase, headers)
}

/** Seconds until trying again makes sense, for a store that is away. */
const RETRY_STORE_SECONDS = 2

export const serviceUnavailable = (): Problem =>
  problem('service unavailable', { 'retry-after': String(RETRY_STORE_SECONDS) })

/** Seconds until trying again makes sense, for a node that is away. */
const RETRY_CHECKOUT_SECONDS = 5

export const checkoutUnavailable = (): Problem =>
  problem('checkout unavailable', { 'retry-after': String(RETRY_CHECKOUT_SECONDS) })

export const unauthorized = (): Problem => problem('unauthorized', { 'www-authenticate': 'Bearer' })
