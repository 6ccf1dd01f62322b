/** The types of WHISPER: plans, capability, the answer before the reveal. The interface sets bounds. */
import type { Static } from 'typebox'
import { AtLeast1, configuredPlanFields, DateTime, planFields } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import { PLAN_IDS, type PlanId } from '../lib/product-names.ts'
import { MAX_READS } from '../protocol/whisper-limits.ts'

/** The shortest ciphertext: version, IV and tag of an envelope, and one byte. */
export const MIN_CIPHERTEXT_BYTES = 30
/** A body is held in memory, and our client accepts no longer answer. */
const MAX_CIPHERTEXT_BYTES = 64 * 1024 * 1024

const ReadLimit = Type.Integer({ minimum: 1, maximum: MAX_READS })

/** A plan in the configuration. The catalogue leaves out `durationSeconds`. */
export const WhisperPlan = Type.Object(
  {
    ...configuredPlanFields,
    readLimit: ReadLimit,
    maxCiphertextBytes: Type.Integer({
      minimum: MIN_CIPHERTEXT_BYTES,
      maximum: MAX_CIPHERTEXT_BYTES,
    }),
  },
  { additionalProperties: false },
)
export type WhisperPlan = Static<typeof WhisperPlan>

/** A plan in the catalogue. */
export const ListedWhisperPlan = Type.Object(
  {
    ...planFields,
    readLimit: AtLeast1,
    maxCiphertextBytes: Type.Integer({ minimum: MIN_CIPHERTEXT_BYTES }),
  },
  { additionalProperties: false },
)

export const WhisperCatalog = Type.Object(
  {
    description: Type.String(),
    clientEncryption: Type.Literal('AES-256-GCM'),
    plans: Type.Array(ListedWhisperPlan),
  },
  { additionalProperties: false },
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
    bestFor: 'One password to one person',
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
  'x-whisper-plan': Type.Enum([...PLAN_IDS], {
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
}

export const WhisperCapability = Type.Object({
  product: Type.Literal('whisper'),
  publicId: Type.String(),
  readToken: Type.String(),
  expiresAt: DateTime,
})
/**
 * A bought whisper. `readToken` allows its holder to fetch the ciphertext; the key in the share code
 * decrypts it. `expiresAt` is RFC 3339.
 *
 * ```ts
 * const { publicId, expiresAt } = await mayfly.buyWhisper({ planId: 'spark', data, onInvoice })
 * ```
 */
export type WhisperCapability = Static<typeof WhisperCapability>

export const NotRevealed = Type.Object({
  error: Type.Literal('not revealed'),
  revealAt: DateTime,
})
