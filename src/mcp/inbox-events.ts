/** `catch.received`: the cursor is the sequence of the inbox, so any instance goes on where another stopped. */
import { STRANGER_NOTICE } from '../mcp-tools/stranger.ts'
import { shown } from '../mcp-tools/webhooks.ts'
import { bearer, type Call, expectJson, idIn, pick, text } from './call.ts'
import { Ended, type EventSource, InvalidCursor, type Placed } from './event-source.ts'
import { FILTERS, pageOfEvents } from './reading.ts'

/** The states of an inbox that end its subscriptions. One that is exhausted may be extended. */
const ENDED = ['manually_destroyed', 'expired', 'suspended']

export const inboxEvents: EventSource = {
  async start(call) {
    const { latestSequence } = await pageOfEvents(call, { limit: 1 })
    await stateOf(call)
    return String(latestSequence)
  },

  async after(call, { cursor, limit, waitSeconds }) {
    if (!/^(0|[1-9]\d{0,14})$/.test(cursor)) throw new InvalidCursor()
    const page = await pageOfEvents(call, {
      ...pick(call.arguments, FILTERS),
      ...{ after: cursor, limit },
      ...(waitSeconds > 0 ? { wait: waitSeconds } : {}),
    })
    const placed = shown(page.events).webhooks.map(
      (webhook): Placed => ({
        event: {
          ...{ eventId: webhook.id, name: 'catch.received', timestamp: webhook.receivedAt },
          data: { notice: STRANGER_NOTICE, webhook },
        },
        cursor: String(webhook.sequence),
      }),
    )
    const last = placed.at(-1)
    if (last) {
      const hasMore = Number(last.cursor) < page.latestSequence
      return { placed, cursor: last.cursor, isTruncated: false, hasMore, isClosed: false }
    }
    const state = await stateOf(call)
    return {
      placed,
      // All up to here was looked at. A place that the inbox has not reached is none.
      cursor: String(page.latestSequence),
      isTruncated: Number(cursor) > page.latestSequence,
      hasMore: false,
      isClosed: state !== 'active',
    }
  },
}

/** @throws Ended */
async function stateOf(call: Call): Promise<string> {
  const answered = await call.ask({
    method: 'GET',
    path: `/api/catch/${idIn(call)}`,
    headers: bearer(call),
  })
  const state = text(expectJson(answered).status)
  if (ENDED.includes(state)) throw new Ended(`The inbox is ${state}.`)
  return state
}
