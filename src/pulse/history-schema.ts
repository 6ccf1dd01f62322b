/** The history of a monitor, as its owner reads it. */
import type { Static } from 'typebox'
import { DateTime, DateTimeOrNull } from '../http/schemas.ts'
import { closed, only, orNull, Type } from '../lib/json-schema.ts'
import { ExitCode, Rid } from './schema.ts'

const MAX_ENTRIES = 200
export const DEFAULT_ENTRIES = 100

export const PulseHistoryQuery = only({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_ENTRIES,
      description: `At most so many entries, ${DEFAULT_ENTRIES} without it`,
      examples: [50],
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{6,80}$',
      description: 'Returns older entries: the `nextCursor` of the page before',
      examples: ['MTAwLjE3OTAwMDAwMDAwMDAuMTc5MDAwMDAwMDAwMA'],
    }),
  ),
  type: Type.Optional(
    Type.Enum(['late'], {
      description: 'Only entries of this type, on each page',
      examples: ['late'],
    }),
  ),
})
/**
 * Which page of a monitor's history: at most `limit` entries (1 to 200, 100 without it), older than those of the
 * page whose `nextCursor` is the `cursor`. `type: 'late'` leaves out all other entries.
 *
 * ```ts
 * const { entries } = await monitor.history({ limit: 10 })
 * ```
 */
export type PulseHistoryQuery = Static<typeof PulseHistoryQuery>

const Share = orNull(Type.Number({ minimum: 0, maximum: 1 }))

export const PulseHistoryEntry = Type.Object(
  {
    type: Type.Enum(['ping', 'failed', 'late', 'blind']),
    at: DateTime,
    endedAt: { ...DateTimeOrNull, description: 'Of `late` and `blind`; null while it lasts' },
    cause: orNull(Type.Enum(['silence', 'failure']), {
      description: 'Of `late`: no ping came in time, or the last run had failed',
    }),
    exitCode: ExitCode,
    run: orNull(
      Type.Object({
        rid: Rid,
        startedAt: DateTimeOrNull,
        durationSeconds: orNull(Type.Number()),
      }),
      { description: 'The run that ended with this ping' },
    ),
  },
  { 'x-schema': 'PulseHistoryEntry', additionalProperties: false },
)
/**
 * A `ping`, a ping that `failed`, a time in which the monitor was `late`, or one in which the service was `blind`:
 * it could not receive pings. What does not apply is null.
 *
 * ```ts
 * const [newest] = (await monitor.history({ limit: 1 })).entries
 * if (newest?.type === 'failed') console.log(newest.at, newest.exitCode)
 * ```
 */
export type PulseHistoryEntry = Static<typeof PulseHistoryEntry>

export const PulseHistory = closed('PulseHistory', 'A page of the history of a monitor', {
  uptime: Type.Object(
    {
      until: DateTime,
      last24Hours: Share,
      last7Days: Share,
      last30Days: Share,
    },
    {
      description:
        'The shares of time, 0 to 1, in which the monitor was not late, without blind windows',
    },
  ),
  entries: Type.Array(PulseHistoryEntry, {
    maxItems: MAX_ENTRIES,
    description: 'Newest first, by the time that each began',
  }),
  nextCursor: orNull(Type.String(), {
    description: 'For the next page; null on the last one',
  }),
})
/**
 * A page of a monitor's history, newest first, and its uptime: the shares of time from 0 to 1 in which it was not
 * late, until now or until its end. Blind windows count neither way. A share is null before the first ping, where it
 * would repeat the shorter one, and where the monitor was late more than 10 000 times.
 *
 * ```ts
 * const { uptime, entries, nextCursor } = await monitor.history({ limit: 20 })
 * ```
 */
export type PulseHistory = Static<typeof PulseHistory>
