/** The types of WHISPER: plans, capability, the answer before the reveal. The interface sets bounds. */
import type { Static } from 'typebox'
import { LARGEST_BODY } from '../http/memory.ts'
import {
  AtLeast0,
  AtLeast1,
  configuredPlanFields,
  DateTime,
  DateTimeOrNull,
  PlanIdSchema,
  planFields,
  token,
  WorksUntil,
} from '../http/schemas.ts'
import { closed, only, orNull, Type } from '../lib/json-schema.ts'
import type { PlanId } from '../lib/product-names.ts'
import { MAX_READS } from '../protocol/whisper-code.ts'
import { SWITCH_STATES } from '../switches/states.ts'

export const publicId = Type.String({
  description: 'Of the whisper',
  examples: ['whisper_0cLz3H5jW9NfXb2mQx7RkT'],
})

/** The shortest ciphertext: version, IV and tag of an envelope, and one byte. */
export const MIN_CIPHERTEXT_BYTES = 30

const ReadLimit = Type.Integer({ minimum: 1, maximum: MAX_READS })

/** A plan in the configuration. The catalogue leaves out `durationSeconds`. */
export const WhisperPlan = only({
  ...configuredPlanFields,
  readLimit: ReadLimit,
  maxCiphertextBytes: Type.Integer({
    minimum: MIN_CIPHERTEXT_BYTES,
    maximum: LARGEST_BODY.purchase,
  }),
})
export type WhisperPlan = Static<typeof WhisperPlan>

/** A plan in the catalogue. */
const ListedWhisperPlan = Type.Object(
  {
    ...planFields,
    readLimit: Type.Integer({ minimum: 1, description: 'The most reads', examples: [3] }),
    maxCiphertextBytes: Type.Integer({
      minimum: MIN_CIPHERTEXT_BYTES,
      description: 'The longest ciphertext',
      examples: [65_536],
    }),
  },
  { 'x-schema': 'WhisperPlan', additionalProperties: false },
)

export const WhisperCatalog = Type.Object(
  {
    description: Type.String(),
    clientEncryption: Type.Literal('AES-256-GCM', {
      description: 'How clients encrypt, before they upload',
    }),
    plans: Type.Array(ListedWhisperPlan),
  },
  { 'x-schema': 'WhisperCatalog', additionalProperties: false },
)
export type WhisperCatalog = Static<typeof WhisperCatalog>

const KIB = 1024
const MIB = 1024 * KIB
const DAY = 24 * 60 * 60

export const WHISPER_PLANS: Record<PlanId, WhisperPlan> = {
  spark: {
    planId: 'spark',
    priceSats: 21,
    durationSeconds: DAY,
    durationLabel: '24 hours',
    bestFor: 'One password for one person',
    available: true,
    readLimit: 3,
    maxCiphertextBytes: 64 * KIB,
  },
  standard: {
    planId: 'standard',
    priceSats: 121,
    durationSeconds: 7 * DAY,
    durationLabel: '7 days',
    bestFor: 'A document for a team',
    available: true,
    readLimit: 42,
    maxCiphertextBytes: MIB,
  },
  long: {
    planId: 'long',
    priceSats: 402,
    durationSeconds: 30 * DAY,
    durationLabel: '30 days',
    bestFor: 'A file for many readers',
    available: true,
    readLimit: MAX_READS,
    maxCiphertextBytes: 8 * MIB,
  },
}

/** Headers of a purchase, for openapi.json. The strict checks are in `routes.ts`. */
export const whisperHeaders = {
  'x-whisper-plan': Type.Enum(PlanIdSchema.enum, {
    'x-schema': 'PlanId',
    description: 'The plan to buy',
    examples: ['spark'],
  }),
  'x-whisper-read-limit': Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_READS,
      description: "How often it can be read. Omitted: the plan's `readLimit`, which is the most",
      examples: [1],
    }),
  ),
  // No `format`: a generator that knows date-time only in JSON leaves the whole operation out.
  'x-whisper-reveal-at': Type.Optional(
    Type.String({
      description:
        'Nobody can read it before: RFC 3339 with an offset, in the future and inside the lifetime of the plan',
      examples: ['2030-01-31T09:00:00Z'],
    }),
  ),
  'x-whisper-reveal-when': Type.Optional(
    Type.String({
      pattern: '^pulse_switch_[0-9A-Za-z]{22}$',
      description:
        "Nobody can read it before the monitor of this switch falls silent, which a monitor's owner makes. It implies a receipt",
      examples: ['pulse_switch_0cLz3H5jW9NfXb2mQx7RkT'],
    }),
  ),
  'x-whisper-receipt': Type.Optional(
    Type.Enum(['on', 'off'], {
      description:
        'on: the capability has a receiptToken besides, which shows when it was read, and can destroy it',
      examples: ['off'],
    }),
  ),
}

/** Headers of a reading, for openapi.json. */
export const readHeaders = {
  'x-whisper-max-bytes': Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'A longer ciphertext is refused, and no read is spent',
      examples: [1_048_576],
    }),
  ),
}

export const WhisperCapability = Type.Object(
  {
    product: Type.Literal('whisper'),
    publicId,
    readToken: token('whisper_read', 'For the reader: each read spends one'),
    receiptToken: Type.Optional(
      Type.String({
        description: 'If it was bought with a receipt: shows the reads, and destroys it',
      }),
    ),
    expiresAt: WorksUntil,
  },
  { 'x-schema': 'WhisperCapability' },
)
/**
 * A bought whisper. `readToken` allows its holder to fetch the ciphertext; the key in the share code
 * decrypts it. `receiptToken`, if it was bought with a receipt, tells when it was read and destroys it.
 * `expiresAt` is RFC 3339.
 *
 * ```ts
 * const { publicId, expiresAt } = await mayfly.buyWhisper({ planId: 'spark', data, onInvoice })
 * ```
 */
export type WhisperCapability = Static<typeof WhisperCapability>

const WHISPER_STATES = ['active', 'suspended', 'exhausted', 'expired', 'destroyed'] as const
/**
 * `active` while it can be read, or will be at its reveal time; `suspended` by the operator, who may resume it;
 * `exhausted` after its last read; `expired`; or `destroyed` by its buyer.
 *
 * ```ts
 * if ((await receipt.status()).state === 'exhausted') console.log('read for the last time')
 * ```
 */
export type WhisperState = (typeof WHISPER_STATES)[number]

export const WhisperReceipt = closed(
  'WhisperReceipt',
  'What the buyer of a whisper learns of its reads',
  {
    publicId,
    state: Type.Enum([...WHISPER_STATES]),
    readLimit: AtLeast1,
    readsSpent: AtLeast0,
    readsLeft: AtLeast0,
    reads: Type.Array(DateTime, {
      maxItems: MAX_READS,
      description: 'The minute of each read, newest first',
    }),
    revealAt: DateTimeOrNull,
    createdAt: DateTime,
    expiresAt: DateTime,
    endedAt: DateTimeOrNull,
    switch: orNull(
      Type.Object({
        state: Type.Enum([...SWITCH_STATES]),
        next: Type.String({ description: 'What to do' }),
        since: DateTime,
        worksUntil: DateTime,
      }),
    ),
  },
)
/**
 * The reads of a whisper and its end. `reads` has the minute of each read, newest first, and nothing of the
 * reader. `switch` is null without one; its state is `waiting` for the first ping after the purchase, `armed`,
 * `open` for good, or `dead`; `next` says what to do. Times are RFC 3339. It can be asked until 24 hours after the end.
 *
 * ```ts
 * const { state, reads, readsLeft } = await mayfly.whisperReceipt(capability).status()
 * ```
 */
export type WhisperReceipt = Static<typeof WhisperReceipt>

export const NotRevealed = Type.Object(
  {
    error: Type.Literal('not revealed'),
    revealAt: Type.String({
      format: 'date-time',
      description: 'Nobody can read it before; later, if it waits for a switch',
    }),
  },
  { 'x-schema': 'NotRevealed' },
)
