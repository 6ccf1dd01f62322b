/** What waits to be told, and the request that brings it to a destination, in the form that its kind reads. */
import type { AlertFormat, UrlFormat } from '../lib/alert-formats.ts'
import { rfc3339 } from '../lib/clock.ts'

/** What happened, in the words of whoever has something to tell. No id or token that opens anything. */
export type Alert = {
  /** Such as `pulse.late`. */
  type: string
  /** Unix milliseconds. */
  occurredAt: number
  /** Whether an earlier alert that still waits says nothing beside this one: states do, warnings do not. */
  replaces: boolean
  content: AlertContent
  /** Some minutes ahead at most: it is told no earlier, because its time would betray something. */
  notBefore?: number
  /**
   * Numbers that only the store knows in the unit of what happened. `{{name}}` in the content stands for the value of
   * this SQL, in which $1 is the id of the owner. Such a content has no text of a stranger.
   */
  counts?: Readonly<Record<string, string>>
}

export type AlertContent = {
  /** The `data` of the message. */
  data: Record<string, unknown>
  /** The same for people, in chats: a line, and a sentence or two. */
  title: string
  text: string
  isUrgent: boolean
}

/** A message, the same at every attempt. */
export type Message = { id: string; type: string; occurredAt: number; content: AlertContent }

type Form = {
  /** The JSON that the URL gets. */
  body(message: Message, url: URL): object
  /** The URL that is called. Default: the destination's own. Null for one that it cannot be. */
  called?(url: URL): URL | null
  /** What the URL must be. */
  expected?: string
}

/** Discord refuses more (https://docs.discord.com/developers/resources/webhook#execute-webhook). */
const DISCORD_CHARS = 2000
/** Nothing of the message makes a preview of a page. */
const DISCORD_SUPPRESS_EMBEDS = 4
/** ntfy's high priority, and its default (https://docs.ntfy.sh/publish/#message-priority). */
const NTFY_PRIORITY = { urgent: 4, usual: 3 }

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
const standardBody = ({ type, occurredAt, content }: Message): object => ({
  ...{ type, timestamp: rfc3339(occurredAt), data: content.data },
})

const FORMS: Record<UrlFormat, Form> = {
  standard: { body: standardBody },
  slack: {
    // https://docs.slack.dev/messaging/formatting-message-text: these three characters are control characters.
    body: ({ content: { title, text } }) => ({
      text: `${title}\n${text}`
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;'),
    }),
  },
  discord: {
    body: ({ content: { title, text } }) => ({
      content: `${title}\n${text}`.slice(0, DISCORD_CHARS),
      allowed_mentions: { parse: [] },
      flags: DISCORD_SUPPRESS_EMBEDS,
    }),
  },
  ntfy: {
    // JSON goes to the server, and names the topic in itself (https://docs.ntfy.sh/publish/#publish-as-json).
    body: ({ content: { title, text, isUrgent } }, url) => ({
      ...{ topic: ntfyTarget(url)?.topic, title, message: text },
      priority: isUrgent ? NTFY_PRIORITY.urgent : NTFY_PRIORITY.usual,
    }),
    called: (url) => ntfyTarget(url)?.server ?? null,
    expected: 'a URL whose path ends with the topic',
  },
}

/** The topic of an ntfy URL is the last segment of its path. Null for a path without a topic. */
function ntfyTarget(url: URL): { server: URL; topic: string } | null {
  const [, folder, topic] = /^(.*\/)([-_A-Za-z0-9]{1,64})$/.exec(url.pathname) ?? []
  if (folder === undefined || topic === undefined) return null
  const server = new URL(url)
  server.pathname = folder
  return { server, topic }
}

/** The URL that is called for a destination, or what it must be instead. */
export function calledUrl(format: UrlFormat, url: URL): { url: URL } | { expected: string } {
  const { called = () => url, expected = 'a URL' } = FORMS[format]
  const target = called(url)
  return target ? { url: target } : { expected }
}

/** The URL that is called and the JSON that it gets. @param url of the destination; null for an inbox. */
export function formatted(
  format: AlertFormat,
  url: URL | null,
  message: Message,
): { url: URL | null; body: string } {
  if (format === 'inbox' || url === null) {
    return { url, body: JSON.stringify(standardBody(message)) }
  }
  const called = calledUrl(format, url)
  const body = JSON.stringify(FORMS[format].body(message, url))
  return { url: 'url' in called ? called.url : url, body }
}
