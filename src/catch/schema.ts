/** The types of CATCH: plans, capability, status, events. The interface sets names and bounds. */
import type { Static, TOptional, TUnsafe } from 'typebox'
import { LARGEST_BODY } from '../http/memory.ts'
import {
  AtLeast1,
  configuredPlanFields,
  DateTime,
  MAX_PLAN_COUNT,
  PlanIdSchema,
  planFields,
  token,
  UpTo,
  WorksUntil,
} from '../http/schemas.ts'
import {
  EVENT_FILTERS,
  FILTER_NAMES,
  type FilterName,
  type FilterValue,
  SEARCH,
} from '../lib/event-filters.ts'
import { closed, named, only, orNull, Type } from '../lib/json-schema.ts'
import type { PlanId } from '../lib/product-names.ts'
import { CHALLENGERS } from '../protocol/signatures/signatures.ts'

/** The storage of one inbox, a tebibyte: more than the disk of a small machine. */
const MAX_STORAGE_BYTES = 1024 ** 4
const limits = {
  requestLimit: Type.Integer({
    minimum: 1,
    description: 'How many requests it accepts',
    examples: [100],
  }),
  storageLimitBytes: Type.Integer({
    minimum: 1,
    description: 'How much it keeps of them',
    examples: [5_242_880],
  }),
  maxBytesPerRequest: Type.Integer({
    minimum: 1,
    description: 'The longest body',
    examples: [65_536],
  }),
}

/** Names an inbox in a path. */
export const publicId = Type.String({
  description: 'Of the inbox',
  examples: ['catch_2mQx7RkT0cLz3H5jW9NfXb'],
})

/** A plan in the configuration. The catalogue leaves out `durationSeconds`. */
export const CatchPlan = only({
  ...configuredPlanFields,
  requestLimit: UpTo(MAX_PLAN_COUNT),
  storageLimitBytes: UpTo(MAX_STORAGE_BYTES),
  maxBytesPerRequest: UpTo(LARGEST_BODY.inbox),
})
export type CatchPlan = Static<typeof CatchPlan>

/** A plan in the catalogue. */
const ListedCatchPlan = Type.Object(
  { ...planFields, ...limits },
  { 'x-schema': 'CatchPlan', additionalProperties: false },
)

export const CatchCatalog = Type.Object(
  { description: Type.String(), plans: Type.Array(ListedCatchPlan) },
  { 'x-schema': 'CatchCatalog', additionalProperties: false },
)
export type CatchCatalog = Static<typeof CatchCatalog>

const KIB = 1024
const MIB = 1024 * KIB
const DAY = 24 * 60 * 60

export const CATCH_PLANS: Record<PlanId, CatchPlan> = {
  spark: {
    planId: 'spark',
    priceSats: 100,
    durationSeconds: DAY,
    durationLabel: '24 hours',
    bestFor: 'Trying out a webhook',
    available: true,
    requestLimit: 100,
    storageLimitBytes: 5 * MIB,
    maxBytesPerRequest: 64 * KIB,
  },
  standard: {
    planId: 'standard',
    priceSats: 400,
    durationSeconds: 7 * DAY,
    durationLabel: '7 days',
    bestFor: 'Building an integration for a week',
    available: true,
    requestLimit: 1_000,
    storageLimitBytes: 50 * MIB,
    maxBytesPerRequest: 256 * KIB,
  },
  long: {
    planId: 'long',
    priceSats: 900,
    durationSeconds: 30 * DAY,
    durationLabel: '30 days',
    bestFor: 'Real traffic for a month',
    available: true,
    requestLimit: 10_000,
    storageLimitBytes: 250 * MIB,
    maxBytesPerRequest: MIB,
  },
}

export const CatchCapability = Type.Object(
  {
    product: Type.Literal('catch'),
    publicId,
    ownerToken: token('catch_owner', 'Reads, deletes and destroys. Keep it secret'),
    ingestToken: token('catch_ingest', 'Marks requests of a sender who has it as authenticated'),
    expiresAt: WorksUntil,
  },
  { 'x-schema': 'CatchCapability' },
)
/**
 * A webhook inbox that was bought. Whoever has `ownerToken` reads and destroys it; a sender with
 * `ingestToken` as its bearer is marked `authenticated`. `expiresAt` is RFC 3339.
 *
 * ```ts
 * const { publicId, expiresAt } = await mayfly.buyCatch({ planId: 'spark', onInvoice })
 * ```
 */
export type CatchCapability = Static<typeof CatchCapability>

export const CatchState = Type.Enum([
  'active',
  'suspended',
  'exhausted',
  'expired',
  'manually_destroyed',
])
/**
 * Only an `active` inbox accepts requests. A `suspended` one is closed until the operator resumes
 * it. The owner can read events in every state but `expired`.
 *
 * ```ts
 * if ((await inbox.status()).status === 'exhausted') console.log('the plan is used up')
 * ```
 */
export type CatchState = Static<typeof CatchState>

export const CatchStatus = closed('CatchStatus', 'The inbox with its limits and counters', {
  publicId,
  planId: PlanIdSchema,
  status: CatchState,
  ...limits,
  acceptedRequestCount: Type.Integer({
    minimum: 0,
    description: 'How many requests of `requestLimit` are used, deleted ones too',
  }),
  storedBytes: Type.Integer({
    minimum: 0,
    description:
      'What is kept of all requests: bodies, paths, queries, names and values of headers, in the bytes they were sent in',
  }),
  createdAt: DateTime,
  expiresAt: WorksUntil,
})
/**
 * State, limits and counters of an inbox. Times are RFC 3339, and each request counts as one.
 * `storedBytes` sums up bodies, paths, queries, and the names and values of headers, as sent.
 *
 * ```ts
 * const { acceptedRequestCount, requestLimit } = await inbox.status()
 * ```
 */
export type CatchStatus = Static<typeof CatchStatus>

/**
 * What an owner can choose. A 402 under our address could ask a stranger for money, 5xx make proxies eject the service,
 * 1xx and 205 desynchronise, and 3xx and 401 redirect and prompt.
 */
const RESPONSE_STATUSES = [200, 201, 202, 204, 400, 403, 404, 409, 410, 422, 429] as const

const FixedResponse = only({
  status: Type.Enum([...RESPONSE_STATUSES], { type: 'integer' }),
  contentType: Type.Optional(Type.Enum(['text/plain', 'application/json'])),
  body: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: 'At most 4096 bytes of UTF-8; none with status 204',
    }),
  ),
  retryAfterSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600 })),
})

const EchoName = Type.String({ minLength: 1, maxLength: 100 })
const EchoResponse = only({
  echo: Type.Union([only({ json: EchoName }), only({ query: EchoName })], {
    description:
      'The name of a member of the JSON body as `json`, or of a parameter as `query`, in 1 to 100 characters',
  }),
})

const Challenger = Type.Enum([...CHALLENGERS])
const HmacResponse = only({
  hmac: Type.Object(
    {
      provider: Challenger,
      secret: Type.String({ minLength: 1, maxLength: 256, pattern: '^[!-~]+$' }),
    },
    {
      additionalProperties: false,
      description: `The provider (${CHALLENGERS.join(' or ')}), and the secret of its app in 1 to 256 visible characters`,
    },
  ),
})

export const CatchResponse = Type.Union([FixedResponse, EchoResponse, HmacResponse], {
  'x-schema': 'CatchResponse',
  examples: [{ echo: { query: 'hub.challenge' } }],
})
/**
 * How an inbox answers the requests that it stores, instead of 204. Either always the same, to POST, PUT, PATCH and
 * DELETE; or with what the request brings, as `text/plain`; or with the proof that a sender asks for. What does not
 * bring it is answered with 204.
 *
 * ```ts
 * await inbox.setResponse({ status: 200, contentType: 'application/json', body: '{"ok":true}' })
 * await inbox.setResponse({ echo: { json: 'challenge' } })
 * await inbox.setResponse({ hmac: { provider: 'zoom', secret: 'the secret token of the app' } })
 * ```
 */
export type CatchResponse = Static<typeof CatchResponse>

export const CatchResponseShown = Type.Union(
  [FixedResponse, EchoResponse, only({ hmac: only({ provider: Challenger }) })],
  {
    'x-schema': 'CatchResponseShown',
    description: 'How the inbox answers; `{"status": 204}` if nothing was chosen',
  },
)
/**
 * How an inbox answers. A secret is never shown.
 *
 * ```ts
 * const shown: CatchResponseShown = await inbox.response()
 * ```
 */
export type CatchResponseShown = Static<typeof CatchResponseShown>

export const RefusalReason = Type.Enum([
  'rate_limited',
  'too_large',
  'storage_full',
  'exhausted',
  'suspended',
  'expired',
  'incomplete',
  'service_busy',
  'service_unavailable',
])
/**
 * Why a request was refused. `rate_limited`: too many to this inbox at once. `too_large`: its body or the number of
 * its headers. `storage_full`: no room for it. `exhausted`: every request of the plan is used. `incomplete`: its body
 * stopped half-way. `service_busy` and `service_unavailable`: the service had no memory, or could not store it.
 *
 * ```ts
 * const isMine = (reason: RefusalReason): boolean => !reason.startsWith('service_')
 * ```
 */
export type RefusalReason = Static<typeof RefusalReason>

export const CatchRefusals = closed(
  'CatchRefusals',
  'How many requests an inbox refused, and why; counted a few seconds late',
  {
    total: Type.Integer({ minimum: 0, description: 'All refused requests', examples: [1] }),
    reasons: Type.Array(
      only({ reason: RefusalReason, count: AtLeast1, firstAt: DateTime, lastAt: DateTime }),
    ),
  },
)
/**
 * How many requests an inbox refused, and why, the most frequent reason first. Times are RFC 3339.
 * A request that is refused is not kept, and a crash of the service may lose the last few seconds.
 *
 * ```ts
 * const { total, reasons } = await inbox.refusals()
 * ```
 */
export type CatchRefusals = Static<typeof CatchRefusals>

export const Access = Type.Enum([...EVENT_FILTERS.access.schema.enum])
export type Access = Static<typeof Access>

export const CatchIpLocation = closed(
  'CatchIpLocation',
  'Where the address of the sender roughly is, looked up without asking anybody',
  {
    ip: Type.String({ examples: ['203.0.113.7'] }),
    country: orNull(Type.String({ description: 'ISO 3166-1 alpha-2', examples: ['DE'] })),
    city: orNull(Type.String({ examples: ['Berlin'] })),
    continent: orNull(Type.String({ examples: ['EU'] })),
    latitude: orNull(Type.Number({ description: 'In degrees', examples: [52.5] })),
    longitude: orNull(Type.Number({ description: 'In degrees', examples: [13.4] })),
    source: Type.String({ description: 'The database that said so', examples: ['GeoLite2-City'] }),
  },
)
export type CatchIpLocation = Static<typeof CatchIpLocation>

export const CatchEvent = named('CatchEvent', 'One request as it came', {
  id: Type.String({ format: 'uuid' }),
  sequence: Type.Integer({
    minimum: 1,
    description: 'Counts the requests of this inbox from 1; deleted ones leave a gap',
  }),
  receivedAt: DateTime,
  access: Access,
  method: Type.String({ examples: ['POST'] }),
  path: Type.String({
    description: 'What follows /c/{publicId}, as sent',
    examples: ['/orders'],
  }),
  query: Type.String({
    description: 'Raw, without the question mark',
    examples: ['id=7'],
  }),
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
    description: 'As sent: in their order, repeated ones too',
    examples: [[{ name: 'Content-Type', value: 'application/json' }]],
  }),
  contentType: orNull(Type.String({ examples: ['application/json'] })),
  body: Type.String({ description: 'See `bodyEncoding`', examples: ['{"paid":true}'] }),
  bodyEncoding: Type.Enum(['utf8', 'base64'], {
    description: '`base64` for a body that is not UTF-8 text',
  }),
  bodyBytes: Type.Integer({ minimum: 0, description: 'The length as sent', examples: [13] }),
  bodySha256: Type.String({
    description: 'Of the bytes as sent, lower-case hex',
    examples: ['c1f7a08f4c2e0a6d6f0b1f0ed1fb7f0a9f0f4b0f7c7d3a5e2b9c8d7e6f5a4b3c'],
  }),
  sourceIp: Type.String({
    description: 'Of the sender; behind a trusted proxy as that one says',
    examples: ['203.0.113.7'],
  }),
  ipLocation: orNull(CatchIpLocation),
})
/**
 * One captured request. `sequence` counts from 1 in its inbox. `body` is text or base64, see
 * `bodyEncoding`; `bodyBytes` is its length in bytes. `headers` are in the order of the request.
 *
 * ```ts
 * const { sequence, method, path, bodyBytes } = await inbox.next()
 * ```
 */
export type CatchEvent = Static<typeof CatchEvent>

/** Beyond it JSON's readers round. An inbox has far fewer events. */
const MAX_SEQUENCE = Number.MAX_SAFE_INTEGER

/** Proxies and clients drop a silent connection after about half a minute. */
const MAX_WAIT_SECONDS = 30

/** The parameters of the filters. */
const filters = Object.fromEntries(
  FILTER_NAMES.map((name) => [
    name,
    Type.Optional(EVENT_FILTERS[name].schema as object as TUnsafe<string>),
  ]),
) as { [Name in FilterName]: TOptional<TUnsafe<FilterValue<Name>>> }

const search = { q: Type.Optional(SEARCH as object as TUnsafe<string>) }

/** What a live stream leaves out. */
export const StreamQuery = only({ ...filters, ...search })
export type StreamQuery = Static<typeof StreamQuery>

export const EventQuery = only({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 50,
      default: 20,
      description: 'At most this many events',
      examples: [50],
    }),
  ),
  cursor: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_SEQUENCE,
      description: 'Returns sequences below this one: the `nextCursor` of the page before',
      examples: [21],
    }),
  ),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_SEQUENCE,
      description:
        'Returns sequences above this one, oldest first and without a cursor: the next request names the last sequence that it got, or after an empty page its `latestSequence`. Not with `cursor`',
      examples: [17],
    }),
  ),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      description:
        'Waits this many seconds for an event after `after`, or for the next one without it. Answers an empty page if none comes, and at once if none can come for now. Not with `cursor`',
      examples: [30],
    }),
  ),
  ...filters,
  ...search,
})
/**
 * Selects a page of events: at most `limit` events (1 to 50, default 20) with sequences below
 * `cursor`, or the oldest above `after`, that match the filter, which `EventFilter` explains. `wait`
 * is how many seconds to wait for one (0 to 30).
 *
 * ```ts
 * const { events } = await inbox.page({ limit: 50, method: 'POST' })
 * ```
 */
export type EventQuery = Static<typeof EventQuery>

export const EventPage = named(
  'EventPage',
  'A page of events, newest first; with `after`, oldest first',
  {
    events: Type.Array(CatchEvent),
    nextCursor: orNull(
      Type.Integer({
        minimum: 1,
        description: 'The `cursor` of the next page; null on the last, and with `after`',
      }),
    ),
    latestSequence: Type.Integer({
      minimum: 0,
      description: 'The newest of the whole inbox; 0 while it is empty',
      examples: [1],
    }),
  },
)
/**
 * A page of events, newest first; with `after`, oldest first. `nextCursor` is the `cursor` of the
 * next page, null on the last and with `after`; `latestSequence` is the newest sequence of the whole inbox, 0 if it is empty.
 *
 * ```ts
 * const { events, nextCursor } = await inbox.page()
 * ```
 */
export type EventPage = Static<typeof EventPage>
