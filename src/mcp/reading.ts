/** The tools that read an inbox. What strangers wrote is named as such, escaped, and bounded call by call. */
import type { SteadyClock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import {
  DEFAULT_WAIT_SECONDS,
  type ReadInboxInput,
  type WaitInput,
  type Webhook,
} from '../mcp-tools/inbox.ts'
import { DEFAULT_TEXT_BYTES, STRANGER_NOTICE, strangerText } from '../mcp-tools/stranger.ts'
import { bearer, type Call, expectJson, idIn, pick, resultOf, type Tool, text } from './call.ts'

/** One request waits so long. Then the client is told that the call is under way. */
const WAIT_STEP_SECONDS = 10
/** A request that was answered this much before its time had nothing to wait for. */
const EARLY_MS = 1_000
/** The texts of strangers in one result. A page ends early before it has more. */
const MAX_RESULT_TEXT_BYTES = 256 * 1024

export const FILTERS = ['access', 'method', 'contentType'] as const

export const readInbox: Tool = async (call) => {
  const asked = call.arguments as ReadInboxInput
  const page = await pageOfEvents(call, pick(asked, [...FILTERS, 'limit', 'cursor', 'after', 'q']))
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
      const page = await pageOfEvents(call, { ...pick(asked, FILTERS), after, wait })
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

/** As many of the events as fit into one result, but at least one. */
export function shown(
  events: Record<string, unknown>[],
  maxTextBytes = DEFAULT_TEXT_BYTES,
): { webhooks: Webhook[]; isCut: boolean } {
  const webhooks: Webhook[] = []
  let bytes = 0
  for (const event of events) {
    const webhook = webhookOf(event, maxTextBytes)
    bytes += [webhook.path, webhook.query, webhook.headers, webhook.body].reduce(
      (sum, some) => sum + (some ? Buffer.byteLength(some.untrustedText) : 0),
      0,
    )
    if (bytes > MAX_RESULT_TEXT_BYTES && webhooks.length > 0) return { webhooks, isCut: true }
    webhooks.push(webhook)
  }
  return { webhooks, isCut: false }
}

function webhookOf(event: Record<string, unknown>, maxTextBytes: number): Webhook {
  const headers = Array.isArray(event.headers) ? event.headers.filter(isObject) : []
  const stranger = (value: string) => strangerText(value, maxTextBytes)
  return {
    id: text(event.id),
    sequence: Number(event.sequence),
    receivedAt: text(event.receivedAt),
    access: event.access === 'authenticated' ? 'authenticated' : 'public',
    method: text(event.method),
    path: stranger(text(event.path)),
    query: stranger(text(event.query)),
    headers: stranger(headers.map(({ name, value }) => `${text(name)}: ${text(value)}`).join('\n')),
    body: event.bodyEncoding === 'utf8' ? stranger(text(event.body)) : null,
    bodyBytes: Number(event.bodyBytes),
    bodySha256: text(event.bodySha256),
    sourceIp: text(event.sourceIp),
  }
}
