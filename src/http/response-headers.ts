import { Type } from '../lib/json-schema.ts'

/** The headers of answers, as the OpenAPI document describes them. */

const header = (description: string, schema: object, example: unknown) => ({
  description,
  schema,
  example,
})

export const RETRY_AFTER = {
  'Retry-After': header('Seconds to wait before the next request', Type.Integer({ minimum: 1 }), 5),
}

/**
 * What is left of the limit that a request took from (draft-ietf-httpapi-ratelimit-headers). Each of its answers
 * has them; the document says so once, and declares them for the 429, because 40 declarations take 5 KB.
 */
const RATE_HEADERS = {
  RateLimit: header(
    'What is left of the limit: `r` requests for `t` seconds',
    Type.String(),
    '"poll";r=29;t=15',
  ),
  'RateLimit-Policy': header(
    'The limit: `q` requests in `w` seconds',
    Type.String(),
    '"poll";q=30;w=15',
  ),
}

const REQUEST_ID = {
  'X-Request-Id': header(
    "The request's id in the service's log",
    Type.String(),
    '1f0c2b1e-6f0a-4d0e-9d3b-0c8f5f6f2f11',
  ),
}

export const wwwAuthenticate = (description: string, example = 'Bearer') => ({
  'WWW-Authenticate': header(description, Type.String(), example),
})

export const ATTACHMENT = {
  'Content-Disposition': header('A file to download', Type.String(), 'attachment'),
}

export const CONTENT_POLICY = {
  'Content-Security-Policy': header(
    'It runs nothing',
    Type.String(),
    "default-src 'none'; sandbox",
  ),
}

/** Bytes that a stranger chose: browsers store them, and neither show nor run them. */
export const RESPONSE = { ...ATTACHMENT, ...CONTENT_POLICY }

/** The same, for pages of others too. */
export const DOWNLOAD = {
  ...RESPONSE,
  'Cross-Origin-Resource-Policy': header('Any page may read it', Type.String(), 'cross-origin'),
}

/** For proxies in front of the service. */
export const STREAM = {
  'X-Accel-Buffering': header('Proxies pass each event on at once', Type.String(), 'no'),
}

/** The headers of an error, by its status. */
export const ERROR_HEADERS: Readonly<Record<number, object>> = {
  401: wwwAuthenticate('The scheme of the credential that is missing or wrong'),
  429: { ...RETRY_AFTER, ...RATE_HEADERS },
  500: REQUEST_ID,
  503: { ...RETRY_AFTER, ...REQUEST_ID },
}
