/** The tools that read an inbox. All that its senders wrote is handed over as text of strangers. */
import {
  type CatchClient,
  type CatchEvent,
  type EventQuery,
  MayflyError,
} from '../../client/index.ts'
import { DEFAULT_WAIT_SECONDS, type Webhook } from '../../mcp-tools/inbox.ts'
import { STRANGER_NOTICE, strangerText } from '../../mcp-tools/stranger.ts'
import { loadCatch } from '../saved.ts'
import type { Call } from './session.ts'

/** How often a waiting call tells its progress: hosts give up on a silent one after a minute. */
const PROGRESS_MS = 10_000
/** The most webhooks of one answer. */
const MAX_PAGE = 50

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
  return {
    notice: STRANGER_NOTICE,
    webhooks: events.map((event) => webhookOf(event, maxTextBytes)),
    nextCursor,
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
    await inbox.next({ after: from, filter, timeoutSeconds, signal: cli.signal })
  } catch (error) {
    const reason = error instanceof MayflyError ? REASONS.get(error.phrase) : undefined
    if (reason === undefined) throw error
    return { notice: STRANGER_NOTICE, webhooks: [], latestSequence: from, reason }
  } finally {
    clearInterval(ticking)
  }
  const { events, latestSequence } = await inbox.page({ ...filter, after: from, limit: MAX_PAGE })
  return {
    notice: STRANGER_NOTICE,
    webhooks: events.map((event) => webhookOf(event, maxTextBytes)),
    // A full page may have more behind it.
    latestSequence: events.length < MAX_PAGE ? latestSequence : events.at(-1)?.sequence,
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

function webhookOf(event: CatchEvent, maxTextBytes: number | undefined): Webhook {
  const { id, sequence, receivedAt, access, method, bodyBytes, bodySha256, sourceIp } = event
  const said = (text: string) => strangerText(text, maxTextBytes)
  return {
    ...{ id, sequence, receivedAt, access, method },
    path: said(event.path),
    query: said(event.query),
    headers: said(event.headers.map((line) => `${line.name}: ${line.value}`).join('\n')),
    body: event.bodyEncoding === 'utf8' ? said(event.body) : null,
    ...{ bodyBytes, bodySha256, sourceIp },
  }
}
