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
    advice: 'GET /api/catalog lists the plans on sale.',
  },
  'invalid request body': {
    status: 400,
    advice: 'Send JSON of the documented shape, with no other member.',
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
      'Send one Idempotency-Key of 8 to 128 visible ASCII characters, such as a fresh UUIDv4.',
  },
  'idempotency key reused with a different request': {
    status: 400,
    advice:
      'The body differs from the first one under this key. If you have paid, poll the order. Another purchase needs another key.',
  },
  'unknown payment protocol': {
    status: 400,
    advice: 'Omit X-Payment-Protocol for the native flow, or send a documented value.',
  },
  'invalid query': {
    status: 400,
    advice: 'A parameter is unknown, repeated or out of range.',
  },
  'invalid settings': {
    status: 400,
    advice: "A setting is unknown or out of range, or the grace is below the plan's minimum.",
  },
  'invalid destinations': {
    status: 400,
    advice: 'Set at most three https URLs of public hosts, or inboxes with their ingest token.',
  },
  'invalid ciphertext': {
    status: 400,
    advice: 'The body must be at least 30 encrypted bytes.',
  },
  'ciphertext too large': {
    status: 400,
    advice:
      "Upload: larger than the plan's maxCiphertextBytes. Read: larger than X-Whisper-Max-Bytes.",
  },
  'invalid read limit': {
    status: 400,
    advice: "X-Whisper-Read-Limit must be an integer from 1 to the plan's readLimit.",
  },
  'invalid reveal time': {
    status: 400,
    advice: "X-Whisper-Reveal-At must be ISO 8601 with an offset, within the plan's lifetime.",
  },
  'invalid receipt option': {
    status: 400,
    advice: 'X-Whisper-Receipt must be on or off.',
  },
  'invalid switch': {
    status: 400,
    advice: 'The monitor must be pinged in time, with pings and time left for the whole plan.',
  },
  'invalid binding': {
    status: 400,
    advice: 'The route is unknown or does not match, or servers can read the path differently.',
  },
  'malformed proof': {
    status: 400,
    advice: 'Send {"preimage": "<64 lower-case hex digits>"} and nothing else. Prove again.',
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
    advice: 'The inbox is unknown, suspended, exhausted, expired or destroyed.',
  },
  'invalid project capability': {
    status: 401,
    advice: "The GATE project's capability is missing, wrong, replaced or suspended.",
  },
  'intent mismatch': {
    status: 401,
    advice: 'The intent or credential is for another project or request. Do not pay again.',
  },
  'wrong preimage': {
    status: 401,
    advice: 'This intent is paid. Do not pay again: prove with the right preimage.',
  },
  'payment not verified': {
    status: 402,
    advice: 'If you have paid, do not pay again: poll, or prove with the preimage.',
  },
  'payment required': {
    status: 402,
    advice:
      'Pay the invoice of the challenge, and repeat the identical request with the credential.',
  },
  'invalid payment credential': {
    status: 402,
    advice:
      'The credential is malformed, forged, or for another request. With a challenge, nothing is paid yet. As a 401 without one, it is paid: do not pay again.',
  },
  'invalid L402 credential': {
    status: 401,
    advice:
      'The credential is malformed or forged, or its preimage is wrong. Without a challenge in the answer it is paid: do not pay again.',
  },
  'no credits': {
    status: 403,
    advice:
      'The GATE project has no credits. Paid intents are honoured. Ask the operator for credits.',
  },
  'cross-site request refused': {
    status: 403,
    advice:
      'A prefetch or another site triggered this request. Open the address itself, or call it with fetch.',
  },
  'foreign origin': {
    status: 403,
    advice: '/mcp takes no requests from pages of other sites. Call the HTTP API from pages.',
  },
  'network refused': {
    status: 403,
    advice:
      'The operator refuses new orders, and requests to inboxes without their ingest token, from your network.',
  },
  'simulator is local': {
    status: 403,
    advice:
      'The simulator gives everything away, and only to its own machine. Call it as localhost, without a proxy. Its log says what to set.',
  },
  'order not found': {
    status: 404,
    advice:
      'Id, key, invoice or preimage belong to no order. If you have paid, do not pay again: the operator can restore the order from its payment hash.',
  },
  'order expired': {
    status: 404,
    advice:
      'It was not paid, or not collected, in time. If you have paid, send invoice and preimage to POST /api/payments/recover. To buy again, use a new key.',
  },
  'order refunded': {
    status: 404,
    advice: 'The operator has paid it back. To buy again, use a new key.',
  },
  'proof of payment required': {
    status: 404,
    advice:
      'The order is paid, and another client opened it or was shown its quote. Do not pay again: repeat the request with its key and `Payment-Preimage: <64 hex digits>`, or with a credential. Or send invoice and preimage to POST /api/payments/recover. Without these, ask the operator.',
  },
  'already delivered': {
    status: 404,
    advice: 'The capability was delivered, and the repeats have ended. Do not pay again.',
  },
  'not found': {
    status: 404,
    advice: 'Unknown, expired, used up, destroyed, or not yours.',
  },
  'method not allowed': { status: 405, advice: 'The Allow header lists the methods of this path.' },
  'cannot be extended': {
    status: 409,
    advice:
      'It has ended, is used up or suspended, or would exceed ten years or the largest limit. No invoice was made. Buy a new one.',
  },
  'give-back refused': {
    status: 409,
    advice:
      'The receipt is of another intent, or the request failed three times. The operator can still honour it.',
  },
  'request timeout': {
    status: 408,
    advice: 'The request did not arrive in time.',
  },
  'not revealed': {
    status: 425,
    advice:
      'The secret opens at revealAt, or later if it waits for a switch. Wait for Retry-After seconds.',
  },
  'rate limited': { status: 429, advice: 'Wait for Retry-After seconds.' },
  'internal error': {
    status: 500,
    advice: 'Report the X-Request-Id to the operator. A paid order is kept: poll or repeat it.',
  },
  'service unavailable': {
    status: 503,
    advice:
      'The store is unavailable or full. Repeat with the same Idempotency-Key after Retry-After seconds: a paid order is kept.',
  },
  'alerts unavailable': {
    status: 503,
    advice: 'The operator of this service sends no alerts.',
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
      'The operator sells no more today, or no more to your network. No invoice was made. Open quotes can still be paid. Retry after Retry-After seconds, possibly hours.',
  },
} as const satisfies Record<string, Entry>

export type Phrase = keyof typeof ERRORS
