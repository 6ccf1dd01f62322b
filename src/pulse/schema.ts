/** The types of PULSE: plans, capability, settings, status. The interface sets names and bounds. */
import type { Static } from 'typebox'
import {
  AtLeast0,
  configuredPlanFields,
  DateTime,
  DateTimeOrNull,
  MAX_PLAN_COUNT,
  PlanIdSchema,
  planFields,
  token,
  UpTo,
  WorksUntil,
} from '../http/schemas.ts'
import { closed, only, orNull, Type } from '../lib/json-schema.ts'
import { GRACE_SECONDS, INTERVAL_SECONDS, LENGTHS } from '../lib/monitor-bounds.ts'
import type { PlanId } from '../lib/product-names.ts'

const heartbeatLimit = Type.Integer({
  minimum: 1,
  description: 'How many pings it accepts',
  examples: [4_500],
})
const limits = {
  heartbeatLimit,
  suggestedCadenceSeconds: Type.Integer({
    minimum: 1,
    description: 'Pinged so often, it lasts to its end',
    examples: [60],
  }),
  minimumGraceSeconds: Type.Integer({
    minimum: 1,
    description: 'The shortest grace that can be set',
    examples: [60],
  }),
}

/** Names a monitor in a path. */
export const publicId = Type.String({
  description: 'Of the monitor',
  examples: ['pulse_H5jW9NfXb2mQx7RkT0cLz3'],
})

/** A plan in the configuration. The catalogue leaves out `durationSeconds`. */
export const PulsePlan = only({
  ...configuredPlanFields,
  heartbeatLimit: UpTo(MAX_PLAN_COUNT),
  // A cadence above the maximum interval could not be set, so it must not be sold.
  suggestedCadenceSeconds: UpTo(INTERVAL_SECONDS.maximum),
  minimumGraceSeconds: UpTo(GRACE_SECONDS.maximum),
})
export type PulsePlan = Static<typeof PulsePlan>

/** A plan in the catalogue. */
const ListedPulsePlan = Type.Object(
  { ...planFields, ...limits },
  { 'x-schema': 'PulsePlan', additionalProperties: false },
)

export const PulseCatalog = Type.Object(
  { description: Type.String(), plans: Type.Array(ListedPulsePlan) },
  { 'x-schema': 'PulseCatalog', additionalProperties: false },
)
export type PulseCatalog = Static<typeof PulseCatalog>

const DAY = 24 * 60 * 60

export const PULSE_PLANS: Record<PlanId, PulsePlan> = {
  spark: {
    planId: 'spark',
    priceSats: 50,
    durationSeconds: DAY,
    durationLabel: '24 hours',
    bestFor: 'Watching one job for a day',
    available: true,
    heartbeatLimit: 4_500,
    suggestedCadenceSeconds: 60,
    minimumGraceSeconds: 60,
  },
  standard: {
    planId: 'standard',
    priceSats: 300,
    durationSeconds: 30 * DAY,
    durationLabel: '30 days',
    bestFor: 'A job that runs every few minutes, for a month',
    available: true,
    heartbeatLimit: 10_000,
    suggestedCadenceSeconds: 300,
    minimumGraceSeconds: 60,
  },
  long: {
    planId: 'long',
    priceSats: 900,
    durationSeconds: 180 * DAY,
    durationLabel: '180 days',
    bestFor: 'A job that runs every 15 minutes, for half a year',
    available: true,
    heartbeatLimit: 20_000,
    suggestedCadenceSeconds: 900,
    minimumGraceSeconds: 300,
  },
}

export const PulseCapability = Type.Object(
  {
    product: Type.Literal('pulse'),
    publicId,
    ownerToken: token('pulse_owner', 'Reads, changes and destroys. Keep it secret'),
    pingToken: token('pulse_ping', 'For the job: it can do nothing but ping'),
    expiresAt: WorksUntil,
  },
  { 'x-schema': 'PulseCapability' },
)
/**
 * A bought monitor. `pingToken` only allows pings; `ownerToken` allows everything else.
 * `expiresAt` is RFC 3339.
 *
 * ```ts
 * const { publicId, pingToken } = await mayfly.buyPulse({ planId: 'spark', onInvoice })
 * ```
 */
export type PulseCapability = Static<typeof PulseCapability>

/**
 * One line of text without invisible characters: no control characters, no line or paragraph
 * separators, and no controls of the writing direction (Unicode 9, bidirectional formatting).
 */
const NAME = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*$'

/**
 * Lengths count characters (code points), not UTF-16 units. A name holds no control characters.
 *
 * ```ts
 * await monitor.update({ name: 'backup', graceSeconds: 600, publicStatusEnabled: true })
 * ```
 */
export const PulseSettings = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        maxLength: LENGTHS.name,
        pattern: NAME,
        description: `One line of at most ${LENGTHS.name} characters, none of them a control character`,
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: LENGTHS.description })),
    expectedIntervalSeconds: Type.Optional(
      Type.Integer({
        ...INTERVAL_SECONDS,
        description: 'How long after a ping the next one is due',
      }),
    ),
    graceSeconds: Type.Optional(
      Type.Integer({ ...GRACE_SECONDS, description: 'How long after that the monitor turns late' }),
    ),
    publicStatusEnabled: Type.Optional(
      Type.Boolean({ description: 'Whether name, description, state and last ping are shared' }),
    ),
  },
  {
    'x-schema': 'PulseSettings',
    additionalProperties: false,
    examples: [{ name: 'backup', expectedIntervalSeconds: 3600, graceSeconds: 600 }],
  },
)
export type PulseSettings = Static<typeof PulseSettings>

export const PulseSchedule = Type.Object(
  {
    cron: Type.String({
      maxLength: LENGTHS.cron,
      description: 'Minute, hour, day of the month, month, day of the week',
    }),
    timeZone: Type.String({
      maxLength: LENGTHS.timeZone,
      description: 'A name of the IANA time zone database',
    }),
    graceSeconds: Type.Integer(GRACE_SECONDS),
  },
  {
    'x-schema': 'PulseSchedule',
    additionalProperties: false,
    description: 'When a ping is expected',
    examples: [{ cron: '0 3 * * 1-5', timeZone: 'Europe/Berlin', graceSeconds: 900 }],
  },
)
/**
 * When a monitor expects a ping: the times of a crontab line in a time zone, each with a grace in seconds.
 *
 * ```ts
 * await monitor.setSchedule({ cron: '0 3 * * 1-5', timeZone: 'Europe/Berlin', graceSeconds: 900 })
 * ```
 */
export type PulseSchedule = Static<typeof PulseSchedule>

/** What a monitor is bought with besides its plan, in the header of the purchase. */
export const MonitorTerms = only({
  ...PulseSettings.properties,
  schedule: Type.Optional(PulseSchedule),
})
export type MonitorTerms = PulseSettings & { schedule?: PulseSchedule }

export const PULSE_STATES = ['waiting', 'operational', 'late', 'exhausted', 'expired'] as const
export const PulseState = Type.Enum([...PULSE_STATES])
/**
 * `waiting` for the first ping, `operational`, `late`, `exhausted` (accepts no more pings), or
 * `expired`.
 *
 * ```ts
 * if ((await monitor.status()).state === 'late') console.log('no ping in time')
 * ```
 */
export type PulseState = (typeof PULSE_STATES)[number]

/** Null for a failure that gave no code. */
export const ExitCode = orNull(Type.Integer({ minimum: 0, maximum: 255 }))
export const Rid = orNull(Type.String({ format: 'uuid' }))

const WhenDue = Type.String({ format: 'date-time', description: 'When the next ping is due' })
const WhenLate = Type.String({
  format: 'date-time',
  description: 'When it turns late without a ping, or when it did',
})
export const PulseStatus = closed('PulseStatus', 'The monitor with its settings and counters', {
  publicId,
  planId: PlanIdSchema,
  state: PulseState,
  name: Type.String({ examples: ['backup'] }),
  description: Type.String({ examples: ['The nightly backup'] }),
  expectedIntervalSeconds: Type.Integer({ minimum: 1, examples: [3_600] }),
  graceSeconds: Type.Integer({ minimum: 1, examples: [600] }),
  schedule: orNull(PulseSchedule, {
    description: 'Expects pings in place of the interval; null without one',
  }),
  publicStatusEnabled: Type.Boolean(),
  publicStatusId: Type.String({
    description: 'For sharing; reveals nothing about the monitor',
    examples: ['pulse_status_9NfXb2mQx7RkT0cLz3H5jW'],
  }),
  heartbeatLimit,
  acceptedHeartbeatCount: AtLeast0,
  remainingHeartbeats: AtLeast0,
  lastPingAt: DateTimeOrNull,
  nextExpectedAt: orNull(WhenDue),
  lateAt: orNull(WhenLate),
  stateChangedAt: DateTime,
  createdAt: DateTime,
  expiresAt: WorksUntil,
  recentHeartbeats: Type.Array(DateTime, {
    maxItems: 100,
    description: 'The last 100 times, newest first',
  }),
  blindWindows: Type.Array(Type.Object({ beganAt: DateTime, endedAt: DateTime }), {
    maxItems: 20,
    description: 'When the service could not receive pings, newest first; they move `lateAt`',
  }),
  failure: orNull(Type.Object({ since: DateTime, exitCode: ExitCode }), {
    description: 'The first failure since a success, while there was none: the monitor is `late`',
  }),
  openRuns: Type.Array(Type.Object({ rid: Rid, startedAt: DateTime }), {
    maxItems: 16,
    description: 'Runs that have sent a start and no end',
  }),
  lastRun: orNull(
    Type.Object({
      rid: Rid,
      result: Type.Enum(['ok', 'failed']),
      exitCode: ExitCode,
      startedAt: DateTimeOrNull,
      endedAt: DateTime,
      durationSeconds: orNull(Type.Number()),
    }),
    { description: 'The last run that sent a start, an exit code or a failure, and has ended' },
  ),
})
/**
 * State, settings and counters of a monitor. Times are RFC 3339, and null if they do not apply.
 * `recentHeartbeats` has the times of the last 100 pings, newest first, and `blindWindows` the last 20 times in
 * which the service could not receive pings: the deadline waits for one interval and grace after them. `failure`
 * says since when the last run has failed, which is `late` as well, and `lastRun` how it ended.
 *
 * ```ts
 * const { state, lastPingAt, remainingHeartbeats } = await monitor.status()
 * ```
 */
export type PulseStatus = Static<typeof PulseStatus>

/** Proxies and clients drop a silent connection after about half a minute. */
const MAX_WAIT_SECONDS = 30

/** Any other parameter is ignored, as it was before these. */
export const StatusQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      description: 'Waits this many seconds for another state',
      examples: [30],
    }),
  ),
  since: Type.Optional(
    Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,3})?Z$',
      description:
        'With `wait`: the `stateChangedAt` that is known. Another one is answered at once',
      examples: ['2026-11-22T03:00:00.000Z'],
    }),
  ),
})
export type StatusQuery = Static<typeof StatusQuery>

export const RevealSwitch = closed('RevealSwitch', 'Binds secrets to the silence of a monitor', {
  switchId: Type.String({
    description: 'Tells nothing of the monitor',
    examples: ['pulse_switch_0cLz3H5jW9NfXb2mQx7RkT'],
  }),
})
/**
 * The switch of a monitor. A whisper that is bought with `revealWhen: switchId` opens when the monitor falls
 * silent.
 *
 * ```ts
 * const { switchId } = await monitor.makeSwitch()
 * ```
 */
export type RevealSwitch = Static<typeof RevealSwitch>

export const PublicPulseStatus = closed('PublicPulseStatus', 'What the owner of a monitor shares', {
  name: Type.String({ examples: ['backup'] }),
  description: Type.String({ examples: ['The nightly backup'] }),
  state: PulseState,
  lastPingAt: DateTimeOrNull,
})
/**
 * The public status that an owner shares. It reveals no id or token of the monitor itself.
 *
 * ```ts
 * const { state } = await mayfly.pulsePublicStatus('pulse_status_…')
 * ```
 */
export type PublicPulseStatus = Static<typeof PublicPulseStatus>
