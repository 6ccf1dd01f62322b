/**
 * `events/stream`: tells what comes until the client leaves or the subscription ends. It waits as requests to the
 * service's own interface do, so it has a place among the streams of its inbox or monitor.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SteadyClock } from '../lib/clock.ts'
import { eventErrorOf, isBusy, isOver } from './event-errors.ts'
import { type Found, notOlder, type Subscription } from './event-source.ts'

/** A silent stream shows a sign of life this often. Clients give up after a minute. */
const WAIT_SECONDS = 20
/** Then the client opens another one, with its cursor. */
const MAX_STREAM_MS = 60 * 60 * 1000
/** Events that are read together. */
const BATCH_EVENTS = 20
/** A source that answers at once although nothing is there is not asked again before. */
const PAUSE_MS = 1_000

/** The key by which the protocol says which request a notification belongs to. */
const SUBSCRIPTION_META = 'io.modelcontextprotocol/subscriptionId'

type Told = {
  /** Of the request. */
  id: string | number
  notify(method: string, params: Record<string, unknown>): Promise<void>
}

export function createPushing({ clock, stopping }: { clock: SteadyClock; stopping: AbortSignal }): {
  follow(subscription: Subscription, told: Told): Promise<Record<string, unknown>>
} {
  return {
    /** @throws what the source throws before the stream has begun */
    async follow({ source, call, cursor: given, notBefore }, { id, notify }) {
      const _meta = { [SUBSCRIPTION_META]: id }
      const tell = (what: string, params: object): Promise<void> =>
        notify(`notifications/events/${what}`, { ...params, _meta })
      const over = AbortSignal.any([call.connection.signal, stopping])
      const pause = (ms: number): Promise<unknown> =>
        sleep(ms, undefined, { signal: over }).catch(() => undefined)
      const until = clock.monotonic() + MAX_STREAM_MS

      let cursor = given ?? (await source.start(call))
      let found = await read(0)
      await tell('active', { cursor, truncated: found.isTruncated })
      for (;;) {
        const isQuiet = found.placed.length === 0
        for (const { event, cursor: after } of found.placed) {
          if (!(await call.connection.drained())) return { _meta }
          await tell('event', { ...event, cursor: after })
        }
        if (isQuiet && found.cursor !== cursor) await tell('heartbeat', { cursor: found.cursor })
        cursor = found.cursor
        if (found.isClosed) await pause(WAIT_SECONDS * 1000)
        if (over.aborted || clock.monotonic() >= until) return { _meta }
        const before = clock.monotonic()
        try {
          found = await read(WAIT_SECONDS)
        } catch (error) {
          if (over.aborted) return { _meta }
          if (isOver(error)) {
            await tell('terminated', { error: errorShown(error) })
            return { _meta }
          }
          if (!isBusy(error)) throw error
          await pause(Math.min(error.retryAfterSeconds ?? 1, WAIT_SECONDS) * 1000)
          found = { ...found, placed: [], cursor, isTruncated: false, isClosed: false }
        }
        if (found.isTruncated) await tell('active', { cursor: found.cursor, truncated: true })
        else if (found.placed.length === 0) {
          await tell('heartbeat', { cursor: found.cursor })
          if (clock.monotonic() - before < PAUSE_MS) await pause(PAUSE_MS)
        }
      }

      async function read(waitSeconds: number): Promise<Found> {
        const asked = { cursor, limit: BATCH_EVENTS, waitSeconds }
        return notOlder(await source.after(call, asked), notBefore)
      }
    },
  }
}

function errorShown(error: unknown): object {
  const { code, message, data } = eventErrorOf(error) ?? { code: 0, message: '', data: {} }
  return { code, message, data }
}
