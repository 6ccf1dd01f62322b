/** The types of alerts: where they go, and what was sent. The same for every product that tells. */
import type { Static } from 'typebox'
import { URL_FORMATS } from '../../lib/alert-formats.ts'
import { closed, only, orNull, Type } from '../../lib/json-schema.ts'
import { DateTime, DateTimeOrNull } from '../schemas.ts'

/** How many destinations an owner has at most. */
const MOST = 3

const AlertFormat = Type.Enum(URL_FORMATS, {
  description: 'The form of the message; `standard` if left out',
})

const opensAt = Type.Optional(
  Type.Boolean({
    description:
      'Whether an alert of lateness says when the switch of the monitor opens; false without it',
  }),
)

const UrlDestination = Type.Object(
  {
    url: Type.String({ maxLength: 2048, description: 'An https URL of a public host' }),
    format: Type.Optional(AlertFormat),
    opensAt,
  },
  { additionalProperties: false, 'x-schema': 'UrlDestination' },
)
const InboxDestination = Type.Object(
  {
    inbox: Type.String({ maxLength: 64, description: 'The id of an inbox' }),
    ingestToken: Type.String({ maxLength: 256, description: 'The ingest token of that inbox' }),
    opensAt,
  },
  { additionalProperties: false, 'x-schema': 'InboxDestination' },
)

const KeptDestination = Type.Object(
  {
    id: Type.String({
      maxLength: 64,
      description: 'Of a destination that is set',
    }),
  },
  { additionalProperties: false, 'x-schema': 'KeptDestination' },
)

export const AlertSettings = Type.Object(
  {
    destinations: Type.Array(Type.Union([UrlDestination, InboxDestination, KeptDestination]), {
      maxItems: MOST,
    }),
  },
  {
    'x-schema': 'AlertSettings',
    additionalProperties: false,
    examples: [{ destinations: [{ url: 'https://hooks.example.org/x', format: 'standard' }] }],
  },
)
/**
 * Where alerts go: at most three https URLs or inboxes of the same service. `format` is `standard` if
 * left out. The token of an inbox proves that it is yours, and is not stored. Those that are left out are told no
 * more: `{ id }` keeps one that is set, with its secret. With `opensAt: true` an alert of lateness says when secrets that
 * wait for the silence of the monitor open. Without it, no alert betrays that there are any.
 *
 * ```ts
 * await monitor.setAlerts({ destinations: [{ url: 'https://ntfy.sh/my-secret-topic', format: 'ntfy' }] })
 * ```
 */
export type AlertSettings = Static<typeof AlertSettings>

const destinationFields = {
  id: Type.String({
    description: 'Of the destination, in `deliveries` too',
    examples: ['alert_5jW9mNf2XbA7qRkT0cLz3H'],
  }),
  format: Type.Enum([...URL_FORMATS, 'inbox']),
  host: Type.String({
    description: 'The host of the URL, or the id of the inbox',
    examples: ['hooks.example.org'],
  }),
  opensAt,
  state: Type.Enum(['untested', 'active', 'gone'], {
    description: '`untested`: gets no alerts until it has answered a test. `gone`: it answered 410',
  }),
}
const OUTCOMES = ['2xx', '4xx', '5xx', 'failed'] as const
const OutcomeOrNull = orNull(Type.Enum([...OUTCOMES]), {
  description: 'Of the last try; `failed` without an answer',
})

export const AlertsSet = closed('AlertsSet', 'The destinations as they are now', {
  destinations: Type.Array(
    only({
      ...destinationFields,
      secret: orNull(Type.String({ examples: ['whsec_MfKQ...'] }), {
        description: 'Signs the messages. Shown once: null for a destination that was set before',
      }),
      test: orNull(Type.Enum([...OUTCOMES, 'no echo']), {
        description: 'How the test ended; null if none was sent',
      }),
    }),
  ),
})
/**
 * The destinations after they were set or tested. `secret` is in the answer that made one, and never again.
 *
 * ```ts
 * const { destinations } = await monitor.setAlerts({ destinations: [{ url: 'https://example.com/hook' }] })
 * if (destinations[0]?.state !== 'active') console.log('the test ended with', destinations[0]?.test)
 * ```
 */
export type AlertsSet = Static<typeof AlertsSet>

export const AlertsStatus = closed(
  'AlertsStatus',
  'The destinations, and the alerts that they were sent',
  {
    destinations: Type.Array(only(destinationFields)),
    deliveries: Type.Array(
      only({
        messageId: Type.String({ examples: ['msg_2mQx7RkT0cLz3H5jW9NfXb'] }),
        destinationId: Type.String({ examples: ['alert_5jW9mNf2XbA7qRkT0cLz3H'] }),
        type: Type.String({ description: 'What happened', examples: ['pulse.late'] }),
        happenedAt: DateTime,
        triedAt: DateTimeOrNull,
        outcome: OutcomeOrNull,
        attempts: Type.Integer({ minimum: 0, examples: [1] }),
        nextTryAt: DateTimeOrNull,
      }),
      { maxItems: 100, description: 'Of the last 24 hours, and what waits; the newest first' },
    ),
  },
)
/**
 * Where alerts go, and what became of those of the last 24 hours. `outcome` is that of the last try:
 * `2xx`, `4xx`, `5xx`, or `failed` if there was no answer.
 *
 * ```ts
 * const { deliveries } = await monitor.alerts()
 * ```
 */
export type AlertsStatus = Static<typeof AlertsStatus>
