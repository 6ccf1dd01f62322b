/**
 * MCP Events (SEP-3415): `events/list`, `events/poll` and `events/stream`, beside the library of the protocol,
 * which knows none of them. Subscriptions are requests: nothing of them outlives one.
 */
import { ProtocolError, ProtocolErrorCode, type Server } from '@modelcontextprotocol/server'
import { Type } from '../http/type.ts'
import type { SteadyClock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import {
  EVENT_NAMES,
  EVENTS_EXTENSION,
  type EventName,
  eventDefinitions,
} from '../mcp-tools/events.ts'
import { asking, type Call, type Connection } from './call.ts'
import { checkOf } from './check.ts'
import { eventErrorOf, invalidParams, noWebhooks, unknownEvent } from './event-errors.ts'
import { type EventSource, type Found, notOlder, type Subscription } from './event-source.ts'
import { createPushing } from './event-stream.ts'
import { inboxEvents } from './inbox-events.ts'
import { createMonitorEvents } from './monitor-events.ts'
import { type AskOwn, Unanswered } from './own-requests.ts'

/** Events in one answer. */
const MAX_EVENTS = 50
/** When to poll again if nothing is waiting. */
const NEXT_POLL_MS = 10_000
const YEAR_MS = 365 * 24 * 60 * 60 * 1000

const Params = Type.Object({
  name: Type.String({ maxLength: 64 }),
  arguments: Type.Optional(Type.Object({})),
  cursor: Type.Optional(Type.Union([Type.String({ maxLength: 64 }), Type.Null()])),
  maxAgeMs: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: YEAR_MS }), Type.Null()]),
  ),
  maxEvents: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
})

export type Events = {
  capabilities: Record<string, unknown>
  /** Answers the methods of events for one request. */
  serve(server: Server, connection: Connection): void
}

export function createEvents({
  askOwn,
  clock,
  onFailed,
  stopping,
}: {
  askOwn: AskOwn
  clock: SteadyClock
  /** A bug of the service. */
  onFailed: (error: unknown, method: string) => void
  /** Aborted when the server stops. */
  stopping: AbortSignal
}): Events {
  const { now } = clock
  const sources: Record<EventName, EventSource> = {
    'catch.received': inboxEvents,
    'pulse.late': createMonitorEvents('pulse.late', { now }),
    'pulse.recovered': createMonitorEvents('pulse.recovered', { now }),
  }
  const pushing = createPushing({ clock, stopping })
  const listed = JSON.parse(JSON.stringify(eventDefinitions))
  const faultInParams = checkOf(Params)
  const faultsInArguments = new Map(
    eventDefinitions.map(({ name, inputSchema }) => [name, checkOf(inputSchema)]),
  )

  /** @throws ProtocolError */
  function subscription(params: Record<string, unknown>, call: Omit<Call, 'arguments'>) {
    const fault = faultInParams(params)
    if (fault !== null) throw invalidParams(fault)
    const { name, arguments: given = {}, cursor = null, maxAgeMs, maxEvents } = params
    const known = EVENT_NAMES.find((each) => each === name)
    if (!known) throw unknownEvent()
    const wrong = faultsInArguments.get(known)?.(given)
    if (wrong) throw invalidParams(`arguments: ${wrong}`)
    return {
      source: sources[known],
      call: { ...call, arguments: given as Record<string, unknown> },
      cursor: cursor as string | null,
      notBefore: typeof maxAgeMs === 'number' && cursor !== null ? now() - maxAgeMs : 0,
      limit: Math.min(typeof maxEvents === 'number' ? maxEvents : MAX_EVENTS, MAX_EVENTS),
    } satisfies Subscription
  }

  async function poll({ source, call, cursor, notBefore, limit }: Subscription) {
    if (cursor === null) return polled({ ...NOTHING, cursor: await source.start(call) })
    const found = await source.after(call, { cursor, limit, waitSeconds: 0 })
    return polled(notOlder(found, notBefore))
  }

  /** Answers, or tells the caller what is wrong. */
  async function told<T>(method: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const fault = eventErrorOf(error)
      if (fault) throw fault
      if (!(error instanceof Unanswered)) onFailed(error, method)
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'internal error')
    }
  }

  return {
    capabilities: {
      // Clients of the draft look here, those of the extension below.
      events: {},
      extensions: { [EVENTS_EXTENSION]: {} },
    },
    serve(server, connection) {
      server.setRequestHandler('events/list', ANY, async (params) => {
        const { cursor } = params
        if (cursor !== undefined && cursor !== null) throw invalidParams('There is one page')
        return { events: listed }
      })
      server.setRequestHandler('events/poll', ANY, (params, { mcpReq }) =>
        told('events/poll', async () => poll(subscription(params, callOf(params, mcpReq)))),
      )
      server.setRequestHandler('events/stream', ANY, (params, { mcpReq }) =>
        told('events/stream', async () =>
          pushing.follow(subscription(params, callOf(params, mcpReq)), {
            id: mcpReq.id,
            notify: (method, told) => mcpReq.notify({ method, params: told }),
          }),
        ),
      )
      for (const method of ['events/subscribe', 'events/unsubscribe']) {
        server.setRequestHandler(method, ANY, async () => {
          throw noWebhooks()
        })
      }

      function callOf(
        { _meta }: Record<string, unknown>,
        mcpReq: { signal: AbortSignal; _meta?: unknown },
      ): Omit<Call, 'arguments'> {
        const caller: Connection = {
          ...connection,
          signal: AbortSignal.any([connection.signal, mcpReq.signal]),
          // Hosts keep the arguments of subscriptions. No connection puts a token there.
          way: 'remote',
        }
        return {
          connection: caller,
          meta: {
            ...(isObject(_meta) ? _meta : {}),
            ...(isObject(mcpReq._meta) ? mcpReq._meta : {}),
          },
          ask: asking(askOwn, caller),
          progress: async () => undefined,
        }
      }
    },
  }
}

const NOTHING: Omit<Found, 'cursor'> = {
  ...{ placed: [], isTruncated: false, hasMore: false, isClosed: false },
}

const polled = ({ placed, cursor, isTruncated, hasMore }: Found) => ({
  events: placed.map(({ event }) => event),
  ...{ cursor, truncated: isTruncated, hasMore, nextPollMs: NEXT_POLL_MS },
})

/** Lets any parameters through: they are checked where they are used. */
const ANY = {
  params: {
    '~standard': {
      version: 1 as const,
      vendor: 'mayfly',
      types: undefined as { input: unknown; output: Record<string, unknown> } | undefined,
      validate: (value: unknown) => ({ value: isObject(value) ? value : {} }),
    },
  },
}
