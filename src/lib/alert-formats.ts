/**
 * The formats in which a URL gets alerts. All else derives from this list: the schema, the options of the command line,
 * the page, and what is sent.
 */
import { rfc3339 } from './clock.ts'

/** A message, the same at every attempt. */
export type Message = { id: string; type: string; occurredAt: number; content: AlertContent }

export type AlertContent = {
  /** The `data` of the message. */
  data: Record<string, unknown>
  /** The same for people, in chats: a line, and a sentence or two. */
  title: string
  text: string
  isUrgent: boolean
}

type Format = {
  /** For people. */
  label: string
  /** What the option of the command line adds. */
  adds: string
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

export const ALERT_FORMATS = {
  standard: {
    label: 'Standard Webhooks',
    adds: 'this URL, by Standard Webhooks',
    // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    body: ({ type, occurredAt, content: { data } }) => ({
      type,
      timestamp: rfc3339(occurredAt),
      data,
    }),
  },
  slack: {
    label: 'Slack',
    adds: 'this incoming webhook of Slack',
    // https://docs.slack.dev/messaging/formatting-message-text: these three characters are control characters.
    body: ({ content: { title, text } }) => ({
      text: `${title}\n${text}`
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;'),
    }),
  },
  discord: {
    label: 'Discord',
    adds: 'this webhook of Discord',
    body: ({ content: { title, text } }) => ({
      content: `${title}\n${text}`.slice(0, DISCORD_CHARS),
      allowed_mentions: { parse: [] },
      flags: DISCORD_SUPPRESS_EMBEDS,
    }),
  },
  ntfy: {
    label: 'ntfy',
    adds: 'this topic of an ntfy server',
    // JSON goes to the server, and names the topic in itself (https://docs.ntfy.sh/publish/#publish-as-json).
    body: ({ content: { title, text, isUrgent } }, url) => ({
      topic: ntfyTarget(url)?.topic,
      title,
      message: text,
      priority: isUrgent ? NTFY_PRIORITY.urgent : NTFY_PRIORITY.usual,
    }),
    called: (url) => ntfyTarget(url)?.server ?? null,
    expected: 'a URL whose path ends with the topic',
  },
} as const satisfies Record<string, Format>

export type UrlFormat = keyof typeof ALERT_FORMATS
/** An inbox of the service itself gets the form of `standard`. */
export type AlertFormat = UrlFormat | 'inbox'

export const URL_FORMATS = Object.keys(ALERT_FORMATS) as UrlFormat[]

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
  const { called = () => url, expected = 'a URL' }: Format = ALERT_FORMATS[format]
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
    return { url, body: JSON.stringify(ALERT_FORMATS.standard.body(message)) }
  }
  const called = calledUrl(format, url)
  const body = JSON.stringify((ALERT_FORMATS[format] as Format).body(message, url))
  return { url: 'url' in called ? called.url : url, body }
}
