/** The tools that read an inbox. What strangers wrote is named as such, escaped, and bounded call by call. */
import type { SteadyClock } from '../lib/clock.ts'
import { FILTER_NAMES } from '../lib/event-filters.ts'
import { isObject } from '../lib/json.ts'
import {
  DEFAULT_WAIT_SECONDS,
  type ReadInboxInput,
  type WaitInput,
  type Webhook,
} from '../mcp-tools/inbox.ts'
import { STRANGER_NOTICE } from '../mcp-tools/stranger.ts'
import { shown } from '../mcp-tools/webhooks.ts'
import { bearer, type Call, expectJson, idIn, pick, resultOf, type Tool } from './call.ts'

/** One request waits so long. Then the client is told that the call is under way. */
const WAIT_STEP_SECONDS = 10
/** A request that was answered this much before its time had nothing to wait for. */
const EARLY_MS = 1_000

export const readInbox: Tool = async (call) => {
  const asked = call.arguments as ReadInboxInput
  const page = await pageOfEvents(
    call,
    pick(asked, [...FILTER_NAMES, 'limit', 'cursor', 'after', 'q']),
  )
  const { webhooks, isCut } = shown(page.events, asked.maxTextBytes)
  // What a full page leaves out comes with the next one. Oldest first, the last sequence continues it.
  const isNewestFirst = asked.after === undefined
  return resultOf({
    notice: STRANGER_NOTICE,
    webhooks,
    nextCursor: isCut && isNewestFirst ? (webhooks.at(-1)?.sequence ?? null) : page.nextCursor,
    latestSequence: page.latestSequence,
  })
}

export const createWaitForWebhook =
  ({ clock }: { clock: SteadyClock }): Tool =>
  async (call) => {
    const asked = call.arguments as WaitInput
    const seconds = asked.timeoutSeconds ?? DEFAULT_WAIT_SECONDS
    const until = clock.monotonic() + seconds * 1000
    // Known before the first wait: else what comes between two of them would be missed.
    let after = asked.after ?? (await pageOfEvents(call, { limit: 1 })).latestSequence
    for (;;) {
      const left = Math.ceil((until - clock.monotonic()) / 1000)
      if (left <= 0) return waited([], { after, reason: 'timeout' })
      const wait = Math.min(left, WAIT_STEP_SECONDS)
      const before = clock.monotonic()
      const page = await pageOfEvents(call, { ...pick(asked, FILTER_NAMES), after, wait })
      if (page.events.length > 0) {
        const { webhooks } = shown(page.events, asked.maxTextBytes)
        after = webhooks.at(-1)?.sequence ?? after
        return waited(webhooks, { after, reason: 'received' })
      }
      // What does not match the filters is not looked at again.
      after = Math.max(after, page.latestSequence)
      const isEarly = clock.monotonic() - before < wait * 1000 - EARLY_MS
      if (isEarly && !(await isActive(call))) return waited([], { after, reason: 'inbox closed' })
      if (isEarly) return waited([], { after, reason: 'timeout' })
      await call.progress(`Waiting, ${Math.max(0, left - wait)} seconds left`)
    }
  }

const waited = (
  webhooks: Webhook[],
  { after, reason }: { after: number; reason: 'received' | 'timeout' | 'inbox closed' },
) => resultOf({ notice: STRANGER_NOTICE, webhooks, latestSequence: after, reason })

async function isActive(call: Call): Promise<boolean> {
  const answered = await call.ask({
    method: 'GET',
    path: `/api/catch/${idIn(call)}`,
    headers: bearer(call),
  })
  return expectJson(answered).status === 'active'
}

type Page = {
  events: Record<string, unknown>[]
  nextCursor: number | null
  latestSequence: number
}

export async function pageOfEvents(call: Call, query: Record<string, unknown>): Promise<Page> {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  const answered = await call.ask({
    method: 'GET',
    path: `/api/catch/${idIn(call)}/events?${new URLSearchParams(given)}`,
    headers: bearer(call),
  })
  const page = expectJson(answered)
  return {
    events: Array.isArray(page.events) ? page.events.filter(isObject) : [],
    nextCursor: typeof page.nextCursor === 'number' ? page.nextCursor : null,
    latestSequence: Number(page.latestSequence),
  }
}
