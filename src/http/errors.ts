/** The catalogue of errors. The phrase is the contract: stable, and never an echo of input. */

/** Beside the phrase of a 400: the name of a member or header, and what it must be. It has names and bounds. */
export type Fault = { field?: string; expected?: string }

type Entry = {
  status: number
  /** What happened, where the money is, and what the caller can do now. For docs/reference/errors.md. */
  advice: string
}

export const ERRORS = {
  'invalid plan': {
    status: 400,
    advice: 'The plan is unknown or not on sale. GET /api/catalog lists the plans.',
  },
  'invalid request body': {
    status: 400,
    advice: 'The body must be JSON of the documented shape, and nothing more.',
  },
  'unsupported media type': {
    status: 400,
    advice: 'Send the documented Content-Type, without Content-Encoding.',
  },
  'request too large': {
    status: 400,
    advice: 'The body or the headers exceed their limit.',
  },
  'invalid idempotency key': {
    status: 400,
    advice:
      'Send one Idempotency-Key of 8 to 128 visible ASCII characters, spaces inside allowed, such as a fresh UUIDv4.',
  },
  'idempotency key reused with a different request': {
    status: 400,
    advice:
      'This key belongs to another purchase. If you repeat one, send the very same body; if you have paid, poll its order. Another purchase needs another key.',
  },
  'unknown payment protocol': {
    status: 400,
    advice: 'Omit X-Payment-Protocol for the native flow, or send a documented value.',
  },
  'invalid query': {
    status: 400,
    advice: 'A query parameter is unknown, repeated or out of range.',
  },
  'invalid settings': {
    status: 400,
    advice:
      "A setting is unknown, has the wrong type or is out of range, or the grace is below the plan's minimum.",
  },
  'invalid destinations': {
    status: 400,
    advice:
      'Alerts go to at most three https URLs of public hosts, or inboxes whose ingest token you have. Nothing was changed.',
  },
  'invalid ciphertext': {
    status: 400,
    advice: 'The body must be at least 30 encrypted bytes.',
  },
  'ciphertext too large': {
    status: 400,
    advice:
      "The body exceeds the plan's maxCiphertextBytes. Of a reading: the ciphertext exceeds X-Whisper-Max-Bytes, and no read was spent.",
  },
  'invalid read limit': {
    status: 400,
    advice: "X-Whisper-Read-Limit must be an integer from 1 to the plan's readLimit.",
  },
  'invalid reveal time': {
    status: 400,
    advice:
      "X-Whisper-Reveal-At must be ISO 8601 with an offset, in the future and within the plan's lifetime.",
  },
  'invalid receipt option': {
    status: 400,
    advice: 'X-Whisper-Receipt must be on or off.',
  },
  'invalid switch': {
    status: 400,
    advice:
      'X-Whisper-Reveal-When must be the switch of a monitor that is pinged in time, with pings and time left for the whole plan.',
  },
  'invalid binding': {
    status: 400,
    advice:
      'The route is unknown, its method or path does not match, or servers may read the path differently.',
  },
  'malformed proof': {
    status: 400,
    advice:
      'The body must be {"preimage": "<64 lower-case hex digits>"} and nothing else. Prove again.',
  },
  'invoice expired': {
    status: 400,
    advice: 'The simulator does not pay expired invoices.',
  },
  unauthorized: {
    status: 401,
    advice: 'Send `Authorization: Bearer <token>` with a token of the right kind.',
  },
  'catch unavailable': {
    status: 401,
    advice: 'The inbox is unknown, suspended, exhausted, expired or destroyed. Nothing was stored.',
  },
  'invalid project capability': {
    status: 401,
    advice:
      "The GATE project's capability is missing, wrong, replaced or suspended, or belongs to another project. Nothing was spent.",
  },
  'intent mismatch': {
    status: 401,
    advice:
      'This project has no such intent, or the intent or credential is for another request. Nothing was spent; do not pay again.',
  },
  'wrong preimage': {
    status: 401,
    advice:
      "This intent is paid, and this is not its preimage. Do not pay again: prove with the preimage of the intent's invoice.",
  },
  'payment not verified': {
    status: 402,
    advice:
      'The payment of this intent is not proven yet. If you have paid, do not pay again: poll, or prove with the preimage.',
  },
  'payment required': {
    status: 402,
    advice:
      'Pay the invoice of the challenge, and repeat the identical request with the credential.',
  },
  'invalid payment credential': {
    status: 402,
    advice:
      'The Payment credential is malformed, forged, or for another request. Nothing was spent. A challenge in this answer is for this request.',
  },
  'invalid L402 credential': {
    status: 401,
    advice:
      'The L402 credential is malformed or forged, or its preimage is wrong. Nothing was spent.',
  },
  'no credits': {
    status: 403,
    advice:
      'The GATE project has no credits left, so no intent was made. Paid intents are still honoured. Ask the operator for credits.',
  },
  'cross-site request refused': {
    status: 403,
    advice:
      "A browser loads this address ahead of time or inside of another site's page, so nobody meant to buy. No invoice was made. Open the address itself, or call it with fetch.",
  },
  'foreign origin': {
    status: 403,
    advice:
      'A page of another site called /mcp, which serves programs and pages of this address. Nothing was done. Call the HTTP API from pages.',
  },
  'network refused': {
    status: 403,
    advice:
      'The operator takes no new orders from your network, and no requests to inboxes without their ingest token. Nothing was stored, and no invoice was made. What you have bought works from here as from anywhere.',
  },
  'simulator is local': {
    status: 403,
    advice:
      'This service gives everything away to its own machine alone, for trying it out. Call it by localhost, without a proxy. Its operator sees in the log what to set.',
  },
  'order not found': {
    status: 404,
    advice:
      'No order has this id, the Idempotency-Key belongs to another order, or the invoice and the preimage prove no payment to this service. If you have paid, do not pay again: the operator can restore the order from the payment hash of its invoice.',
  },
  'order expired': {
    status: 404,
    advice:
      'The invoice was not paid in time, or the capability was not collected before it expired. To buy again, use a new key.',
  },
  'order refunded': {
    status: 404,
    advice:
      'The operator has paid this order back, so it is not delivered any more. To buy again, use a new key.',
  },
  'proof of payment required': {
    status: 404,
    advice:
      'The order is paid, but another client opened it or has used its Idempotency-Key, or what it was to extend had ended and something new was sold in its place. Do not pay again: repeat the request with its key and the preimage that your wallet shows, `Payment-Preimage: <64 hex digits>`, or with the Payment or L402 credential; or send the whole invoice and the preimage to POST /api/payments/recover. Without these, the operator can deliver the order.',
  },
  'already delivered': {
    status: 404,
    advice:
      'The capability was delivered, and its answer is not repeated any more. Nothing is owed; do not pay again.',
  },
  'not found': {
    status: 404,
    advice:
      'It is unknown, expired, exhausted, destroyed, or not yours: on purpose, the answer does not say which.',
  },
  'method not allowed': { status: 405, advice: 'The Allow header lists the methods of this path.' },
  'cannot be extended': {
    status: 409,
    advice:
      'It has ended, is used up or suspended, or would last longer than ten years from now, or its limits would reach 2^53. No invoice was made. What has ended can only be bought anew.',
  },
  'give-back refused': {
    status: 409,
    advice:
      'This receipt is not the newest of its intent, or the intent was already given back twice. Nothing was changed. The operator can honour a payment that was never served.',
  },
  'request timeout': {
    status: 408,
    advice: 'The request did not arrive in time. Nothing was stored.',
  },
  'not revealed': {
    status: 425,
    advice:
      'The secret opens at revealAt, or later if it waits for a switch. Wait for Retry-After seconds; no read was spent.',
  },
  'rate limited': { status: 429, advice: 'Wait for Retry-After seconds. Nothing was spent.' },
  'internal error': {
    status: 500,
    advice:
      'The service failed. Tell the operator the X-Request-Id. A paid order is kept: poll or repeat it.',
  },
  'service unavailable': {
    status: 503,
    advice:
      'The store is unavailable or full. Retry after Retry-After seconds with the same Idempotency-Key: a paid order is kept.',
  },
  'alerts unavailable': {
    status: 503,
    advice: 'The operator of this service sends no alerts. Nothing was changed.',
  },
  'payment not honoured': {
    status: 503,
    advice:
      'The payment of this GATE intent is proven, but cannot be honoured now. The operator can see it. Do not pay again; prove again later.',
  },
  'not ready': {
    status: 503,
    advice:
      'Only GET /ready answers this, for load balancers: the store or the node is unavailable, or the service is stopping.',
  },
  'checkout unavailable': {
    status: 503,
    advice:
      'The Lightning node cannot take payments now. No invoice was made; a paid order is kept. Retry after Retry-After seconds.',
  },
  'sold out': {
    status: 503,
    advice:
      'The operator sells no more today, or no more to your network. No invoice was made. It sells again after Retry-After seconds, which may be hours. What was quoted can still be paid.',
  },
} as const satisfies Record<string, Entry>

export type Phrase = keyof typeof ERRORS

/** An error for the caller. Any other thrown error is a bug of the service. */
export class Problem extends Error {
  override name = 'Problem'
  readonly phrase: Phrase
  readonly status: number
  readonly headers: Record<string, string>
  readonly fault: Fault
  constructor(phrase: Phrase, headers: Record<string, string>, fault: Fault) {
    super(phrase)
    this.phrase = phrase
    this.status = ERRORS[phrase].status
    this.headers = headers
    this.fault = fault
  }
}

/** `throw problem('order expired')`. The headers are added to this answer. */
export function problem(phrase: Phrase, headers: Record<string, string> = {}): Problem {
  return new Problem(phrase, headers, {})
}

/** `throw invalid('invalid settings', { field: 'name', expected: 'at most 80 characters' })`, for a 400. */
export function invalid(phrase: Phrase, fault: Fault): Problem {
  return new Problem(phrase, {}, fault)
}

/** Retry-After when the store is away. */
const RETRY_STORE_SECONDS = 2

export const serviceUnavailable = (): Problem =>
  problem('service unavailable', { 'retry-after': String(RETRY_STORE_SECONDS) })

/** Retry-After when the node is away. */
const RETRY_CHECKOUT_SECONDS = 5

export const checkoutUnavailable = (): Problem =>
  problem('checkout unavailable', { 'retry-after': String(RETRY_CHECKOUT_SECONDS) })

export const unauthorized = (): Problem => problem('unauthorized', { 'www-authenticate': 'Bearer' })
