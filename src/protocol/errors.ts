/** The catalogue of errors. The phrase is the contract: stable, and never an echo of input. */

/** Beside the phrase of a 400: the name of a member or header, and what it must be. It has names and bounds. */
export type Fault = { field?: string; expected?: string }

type Entry = {
  status: number
  /**
   * What happened, where the money is, and what the caller can do now: for docs/reference/errors.md, the command line and
   * tools of MCP. Names of headers are in `field` and in the description of the operation.
   */
  advice: string
}

export const ERRORS = {
  'invalid plan': {
    status: 400,
    advice:
      'It is not on sale, or not the plan of what is to be extended. The catalogue lists the plans.',
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
    advice: 'The body, the arguments or the headers exceed their limit.',
  },
  'invalid idempotency key': {
    status: 400,
    advice:
      'Send one Idempotency-Key of 8 to 128 visible ASCII characters, such as a fresh UUIDv4.',
  },
  'idempotency key reused with a different request': {
    status: 400,
    advice:
      'It differs from the first request under this key or purchaseId. To repeat that one, send the same; if it is paid, poll or check its order. Another purchase needs another key.',
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
    advice: 'At most three https URLs of public hosts, or inboxes with their ingest token.',
  },
  'invalid ciphertext': {
    status: 400,
    advice: 'A ciphertext has at least 30 bytes.',
  },
  'ciphertext too large': {
    status: 400,
    advice: "It exceeds the plan's maxCiphertextBytes, or what its reader takes.",
  },
  'invalid read limit': {
    status: 400,
    advice: "It is an integer from 1 to the plan's readLimit.",
  },
  'invalid reveal time': {
    status: 400,
    advice: "It is ISO 8601 with an offset, within the plan's lifetime.",
  },
  'invalid receipt option': {
    status: 400,
    advice: 'It is on or off.',
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
    advice:
      'The token is missing, replaced or of another kind, or what it is for has ended or is suspended.',
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
      'It is malformed, forged, or for another request. Without a challenge in the answer it is paid: do not pay again, and repeat the request with the right one.',
  },
  'invalid L402 credential': {
    status: 401,
    advice:
      'It is malformed or forged, or its preimage is wrong. Without a challenge in the answer it is paid: do not pay again, and repeat the request with the right one.',
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
      'It was not paid, or not collected, in time. If you have paid, recover it at POST /api/payments/recover by its invoice and preimage. To buy again, begin a new purchase with a new key.',
  },
  'order refunded': {
    status: 404,
    advice: 'The operator has paid it back. To buy again, begin a new purchase with a new key.',
  },
  'proof of payment required': {
    status: 404,
    advice:
      'It is paid, and another client opened it or was shown its quote. Do not pay again: repeat the request with its credential or its preimage, or recover it at POST /api/payments/recover by its invoice and preimage. Without these, ask the operator.',
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
    advice: 'No read was spent. It opens at revealAt, or later if it waits for a switch.',
  },
  'rate limited': {
    status: 429,
    advice: 'Nothing was spent.',
  },
  'internal error': {
    status: 500,
    advice:
      'The service failed. What is paid is kept: repeat the same request, and do not pay again.',
  },
  'service unavailable': {
    status: 503,
    advice:
      'The store is unavailable or full. What is paid is kept: repeat the same request, and do not pay again.',
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
      'The Lightning node cannot take payments now. No invoice was made, and what is paid is kept.',
  },
  'sold out': {
    status: 503,
    advice:
      'The operator sells no more today, or no more to your network, possibly for hours. No invoice was made. Open quotes can still be paid.',
  },
} as const satisfies Record<string, Entry>

export type Phrase = keyof typeof ERRORS
