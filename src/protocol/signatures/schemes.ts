/** How the senders of webhooks sign: one entry for each, from which everything else is derived. */
import { base64, base64Bytes, hex, hexBytes } from '../../lib/bytes.ts'
import { isObject } from '../../lib/json.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm, sha256Base64, sha256Hex } from './mac.ts'
import {
  type Finding,
  failed,
  hasName,
  malformed,
  onlyHeader,
  type SignedRequest,
  seconds,
  TIMESTAMP_FORM,
} from './verdict.ts'

/** What a request says of its signature. The body is signed with `before` in front of it. */
type Signed = {
  header: string
  signatures: readonly Uint8Array[]
  algorithm?: HmacAlgorithm
  before?: string
  /** What is signed, for the verdict. Default: the body. */
  covers?: string
  /** The time that is signed, in unix seconds, and the header that has it. */
  time?: { signedAt: number; header: string; mayBeNew?: true }
}

export type Scheme = {
  /** The headers that only this sender has. */
  knownBy: readonly string[]
  read(request: SignedRequest): Signed | { failed: Finding }
  /** Secrets of the same sender that sign no webhooks, and what to say of them. */
  otherSecret?: { form: RegExp; sentence: string }
  /** The key in a secret that is not used as it is, or null. */
  keyOf?: (secret: string) => Uint8Array<ArrayBuffer> | null
  /** How this sender asks a new address to prove that it knows the secret. */
  challenge?: {
    /** The text that the address must sign; anything but a text if the request does not ask. */
    tokenIn(request: { json: () => unknown; query: URLSearchParams }): unknown
    /** The JSON to answer with. */
    answer(token: string, mac: Uint8Array): Record<string, string>
  }
}

const HEX_FORM = '64 digits of lower-case hex'

/**
 * `sha256=` and the HMAC-SHA256 of the body in hex. Meta, Gitea and others sign the same way.
 * https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
 */
const github: Scheme = {
  knownBy: ['X-Hub-Signature-256'],
  read: (request) => readHex(request, { header: 'X-Hub-Signature-256', prefix: 'sha256=' }),
}

/**
 * `t=timestamp,v1=signature`, perhaps with several signatures. Each is the HMAC-SHA256 of `timestamp.body` in hex,
 * under the endpoint's secret, all of it with `whsec_`. https://docs.stripe.com/webhooks/signature
 */
const stripe: Scheme = {
  knownBy: ['Stripe-Signature'],
  read(request) {
    const name = 'Stripe-Signature'
    const header = onlyHeader(request, name)
    if ('failed' in header) return header
    const items = header.value.split(',').map((item) => {
      const at = item.indexOf('=')
      return [item.slice(0, Math.max(at, 0)), item.slice(at + 1)] as const
    })
    const timestamps = items.filter(([key]) => key === 't')
    const [, timestamp = ''] = timestamps[0] ?? []
    const signedAt = seconds(timestamp)
    // Signatures of other schemes are skipped, as Stripe's documentation asks.
    const signatures = items
      .filter(([key]) => key === 'v1')
      .map(([, text]) => sha256Hex(text))
      .filter((signature) => signature !== null)
    if (timestamps.length !== 1 || signedAt === null || signatures.length === 0) {
      const form = `t=, ${TIMESTAMP_FORM}, and v1= with ${HEX_FORM}, with a comma between`
      return { failed: malformed(name, form) }
    }
    return {
      header: name,
      signatures,
      before: `${timestamp}.`,
      covers: 'the timestamp or the body',
      // Stripe's libraries accept a timestamp from the future.
      time: { signedAt, header: name, mayBeNew: true },
    }
  },
  otherSecret: {
    form: /^(?:sk|pk|rk)_/,
    sentence:
      'This is an API key. Webhooks are signed with the secret of the endpoint, which begins with whsec_.',
  },
}

/** `v0=` and the HMAC-SHA256 of `v0:timestamp:body` in hex. */
const v0 = (signature: string, timestamp: string): Pick<Scheme, 'knownBy' | 'read'> => ({
  knownBy: [signature],
  read(request) {
    const time = onlyHeader(request, timestamp)
    const signed = readHex(request, { header: signature, prefix: 'v0=' }, time)
    if ('failed' in signed) return signed
    if ('failed' in time) return time
    const signedAt = seconds(time.value)
    if (signedAt === null) return misdated(timestamp)
    return {
      ...signed,
      before: `v0:${time.value}:`,
      covers: 'the timestamp or the body',
      time: { signedAt, header: timestamp },
    }
  },
})

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
const slack: Scheme = {
  ...v0('X-Slack-Signature', 'X-Slack-Request-Timestamp'),
  otherSecret: {
    form: /^xox[a-z]-|^xapp-/,
    sentence: 'This is a token. Requests are signed with the signing secret of the app.',
  },
}

/**
 * The HMAC-SHA256 of the body in base64, under the app's client secret.
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https
 */
const shopify: Scheme = {
  knownBy: ['X-Shopify-Hmac-Sha256'],
  read(request) {
    const name = 'X-Shopify-Hmac-Sha256'
    const header = onlyHeader(request, name)
    if ('failed' in header) return header
    const signature = sha256Base64(header.value)
    if (!signature) return { failed: malformed(name, '32 bytes in base64') }
    return { header: name, signatures: [signature] }
  },
  otherSecret: {
    form: /^shp(?:at|ca|pa|ua)_/,
    sentence: 'This is an access token. Webhooks are signed with the client secret of the app.',
  },
}

/**
 * Signatures with a space between, each `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64. The secret is
 * base64 after `whsec_`. Svix and its customers send the same as svix-id, svix-timestamp and svix-signature.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
const standardWebhooks: Scheme = {
  knownBy: ['webhook-signature', 'svix-signature'],
  read(request) {
    const [own, svix] = ['webhook-signature', 'svix-signature'].map((name) =>
      request.headers.some((header) => hasName(header, name)),
    )
    const named = svix && !own ? 'svix' : 'webhook'
    const header = onlyHeader(request, `${named}-signature`)
    if ('failed' in header) return header
    const id = onlyHeader(request, `${named}-id`)
    if ('failed' in id) return id
    const timestamp = onlyHeader(request, `${named}-timestamp`)
    if ('failed' in timestamp) return timestamp
    const items = header.value.split(' ')
    const signatures = items
      .filter((item) => item.startsWith('v1,'))
      .map((item) => sha256Base64(item.slice('v1,'.length)))
      .filter((signature) => signature !== null)
    if (signatures.length === 0) return { failed: unsigned(`${named}-signature`, items) }
    const signedAt = seconds(timestamp.value)
    if (signedAt === null) return misdated(`${named}-timestamp`)
    return {
      header: `${named}-signature`,
      signatures,
      // Header values have a character per byte; the id is ASCII where the sender keeps to the specification.
      before: `${id.value}.${timestamp.value}.`,
      covers: 'the id, the timestamp or the body',
      time: { signedAt, header: `${named}-timestamp` },
    }
  },
  keyOf(secret) {
    const bytes = base64Bytes(secret.replace(/^whsec_/, ''))
    return bytes && bytes.length > 0 ? bytes : null
  },
}

/**
 * Like Slack, under the secret token of the app. An address proves itself with the HMAC-SHA256 of a token, in hex.
 * https://developers.zoom.us/docs/api/webhooks/
 */
const zoom: Scheme = {
  ...v0('X-Zm-Signature', 'X-Zm-Request-Timestamp'),
  challenge: {
    tokenIn({ json }) {
      const body = json()
      if (!isObject(body) || body.event !== 'endpoint.url_validation') return null
      return isObject(body.payload) ? body.payload.plainToken : null
    },
    answer: (plainToken, mac) => ({ plainToken, encryptedToken: hex(mac) }),
  },
}

/**
 * `sha256=` and the HMAC-SHA256 of the body in base64, under the consumer secret of the app. An address proves itself
 * with that of a token in the query. https://docs.x.com/x-api/webhooks/introduction
 */
const x: Scheme = {
  knownBy: ['X-Twitter-Webhooks-Signature'],
  read(request) {
    const name = 'X-Twitter-Webhooks-Signature'
    const header = onlyHeader(request, name)
    if ('failed' in header) return header
    const [, text = ''] = /^sha256=(.*)$/.exec(header.value) ?? []
    const signature = sha256Base64(text)
    if (!signature) return { failed: malformed(name, 'sha256= and 32 bytes in base64') }
    return { header: name, signatures: [signature] }
  },
  challenge: {
    tokenIn: ({ query }) =>
      query.getAll('crc_token').length === 1 ? query.get('crc_token') : null,
    answer: (_token, mac) => ({ response_token: `sha256=${base64(mac)}` }),
  },
}

/** The order in which a request is recognized. */
export const SCHEMES = {
  stripe,
  slack,
  zoom,
  x,
  shopify,
  'standard-webhooks': standardWebhooks,
  github,
} satisfies Record<string, Scheme>

/**
 * How a sender signs that has no rules of its own here: with an HMAC of the body in a header.
 *
 * ```ts
 * const scheme: HmacScheme = { header: 'X-Signature', algorithm: 'sha512', encoding: 'base64' }
 * ```
 */
export type HmacScheme = {
  /** The name of the header, in any case. */
  header: string
  /** The hash function. Default `sha256`. */
  algorithm?: HmacAlgorithm
  /** How the bytes are written. Default `hex`; base64 in either alphabet, padded or not. */
  encoding?: 'hex' | 'base64'
  /** What stands before the signature, such as `sha256=`. Default: nothing. */
  prefix?: string
}

/** The rules of such a sender. */
export const hmacScheme = ({
  header: name,
  algorithm = 'sha256',
  encoding = 'hex',
  prefix = '',
}: HmacScheme): Scheme => ({
  knownBy: [],
  read(request) {
    const header = onlyHeader(request, name)
    if ('failed' in header) return header
    const { value } = header
    const text = value.startsWith(prefix) ? value.slice(prefix.length) : null
    const signature = text === null ? null : encoding === 'hex' ? hexBytes(text) : base64Bytes(text)
    const { bytes } = HMAC_ALGORITHMS[algorithm]
    if (signature?.length === bytes) return { header: name, signatures: [signature], algorithm }
    const form = `${prefix === '' ? '' : `${prefix} and `}${bytes} bytes in ${encoding}`
    return { failed: malformed(name, form) }
  },
})

/** A header with one signature in hex, beside another header that must be there too. */
function readHex(
  request: SignedRequest,
  { header: name, prefix }: { header: string; prefix: string },
  beside: { value: string } | { failed: Finding } = { value: '' },
): Signed | { failed: Finding } {
  const header = onlyHeader(request, name)
  if ('failed' in header) return header
  if ('failed' in beside) return beside
  const { value } = header
  const signature = value.startsWith(prefix) ? sha256Hex(value.slice(prefix.length)) : null
  if (!signature) return { failed: malformed(name, `${prefix} and ${HEX_FORM}`) }
  return { header: name, signatures: [signature] }
}

const misdated = (header: string): { failed: Finding } => ({
  failed: malformed(header, TIMESTAMP_FORM),
})

function unsigned(header: string, items: readonly string[]): Finding {
  if (!items.some((item) => item.startsWith('v1a,'))) {
    return malformed(header, 'v1, and 32 bytes in base64, with a space between several')
  }
  return failed(
    'header malformed',
    `${header} has only v1a signatures, which need the public key of the sender and no secret.`,
    header,
  )
}
