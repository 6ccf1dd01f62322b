/** The tools that read an inbox. All that its senders wrote is handed over as text of strangers. */
import { type CatchClient, type EventQuery, MayflyError } from '../../client/index.ts'
import { DEFAULT_WAIT_SECONDS } from '../../mcp-tools/inbox.ts'
import { STRANGER_NOTICE } from '../../mcp-tools/stranger.ts'
import { MAX_WEBHOOKS, shown } from '../../mcp-tools/webhooks.ts'
import { loadCatch } from '../vault/saved.ts'
import type { Call } from './session.ts'

/** How often a waiting call tells its progress: hosts give up on a silent one after a minute. */
const PROGRESS_MS = 10_000

type Filters = Pick<EventQuery, 'access' | 'method' | 'contentType'>

export type ReadInput = Filters & {
  name: string
  limit?: number
  cursor?: number
  after?: number
  q?: string
  maxTextBytes?: number
}

export type WaitInput = Filters & {
  name: string
  after?: number
  timeoutSeconds?: number
  maxTextBytes?: number
}

export async function readInbox(call: Call, input: ReadInput): Promise<object> {
  const { name, maxTextBytes, ...query } = input
  const { events, nextCursor, latestSequence } = await inboxOf(call, name).page(query)
  const { webhooks, isCut } = shown(events, maxTextBytes)
  // What a full page leaves out comes with the next one. Oldest first, the last sequence continues it.
  const isNewestFirst = query.after === undefined
  return {
    notice: STRANGER_NOTICE,
    webhooks,
    nextCursor: isCut && isNewestFirst ? (webhooks.at(-1)?.sequence ?? null) : nextCursor,
    latestSequence,
  }
}

export async function waitForWebhook(call: Call, input: WaitInput): Promise<object> {
  const { name, maxTextBytes, timeoutSeconds = DEFAULT_WAIT_SECONDS, after, ...filter } = input
  const { cli, report } = call
  const inbox = inboxOf(call, name)
  const from = after ?? (await inbox.page({ limit: 1 })).latestSequence
  const begun = cli.now()
  const tell = (): void => {
    const seconds = Math.round((cli.now() - begun) / 1000)
    report(`Waiting for a webhook for ${seconds} of ${timeoutSeconds} s`)
  }
  tell()
  const ticking = setInterval(tell, PROGRESS_MS)
  try {
    await inbox.next({ after: from, filter, timeoutMs: timeoutSeconds * 1000, signal: cli.signal })
  } catch (error) {
    const reason = error instanceof MayflyError ? REASONS.get(error.phrase) : undefined
    if (reason === undefined) throw error
    return { notice: STRANGER_NOTICE, webhooks: [], latestSequence: from, reason }
  } finally {
    clearInterval(ticking)
  }
  const page = await inbox.page({ ...filter, after: from, limit: MAX_WEBHOOKS })
  const { webhooks, isCut } = shown(page.events, maxTextBytes)
  const isFull = isCut || webhooks.length === MAX_WEBHOOKS
  return {
    notice: STRANGER_NOTICE,
    webhooks,
    // A full page may have more behind it.
    latestSequence: isFull ? webhooks.at(-1)?.sequence : page.latestSequence,
    reason: 'received',
  }
}

const REASONS = new Map([
  ['no event in time', 'timeout'],
  ['inbox ended', 'inbox closed'],
])

function inboxOf({ cli }: Call, name: string): CatchClient {
  const { capability, baseUrl } = loadCatch(cli, name)
  return cli.mayfly(baseUrl).catch(capability)
}
