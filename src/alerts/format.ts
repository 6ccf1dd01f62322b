/** The request that brings a message to a destination, in the form that its kind reads. */
import { rfc3339 } from '../lib/clock.ts'
import type { Format, Message } from './alert.ts'

/** Discord refuses more (https://docs.discord.com/developers/resources/webhook#execute-webhook). */
const DISCORD_CHARS = 2000
/** Nothing of the message makes a preview of a page. */
const DISCORD_SUPPRESS_EMBEDS = 4
/** ntfy's high priority, and its default (https://docs.ntfy.sh/publish/#message-priority). */
const NTFY_PRIORITY = { urgent: 4, usual: 3 }

/** Where ntfy is told to publish: JSON goes to the server, and names the topic in itself. */
export type NtfyTarget = { server: URL; topic: string }

/** The topic of an ntfy URL is the last segment of its path. Null for a path without a topic. */
export function ntfyTarget(url: URL): NtfyTarget | null {
  const [, folder, topic] = /^(.*\/)([-_A-Za-z0-9]{1,64})$/.exec(url.pathname) ?? []
  if (folder === undefined || topic === undefined) return null
  const server = new URL(url)
  server.pathname = folder
  return { server, topic }
}

/** The URL that is called and the JSON that it gets. @param url of the destination; null for an inbox. */
export function formatted(
  format: Format,
  url: URL | null,
  message: Message,
): { url: URL | null; body: string } {
  const ntfy = format === 'ntfy' && url ? ntfyTarget(url) : null
  return { url: ntfy?.server ?? url, body: JSON.stringify(bodyOf(format, message, ntfy?.topic)) }
}

function bodyOf(format: Format, message: Message, topic = ''): object {
  const { title, text, isUrgent, data } = message.content
  switch (format) {
    case 'standard':
    case 'inbox':
      // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
      return { type: message.type, timestamp: rfc3339(message.occurredAt), data }
    case 'slack':
      // https://docs.slack.dev/messaging/formatting-message-text: these three characters are control characters.
      return { text: slackText(`${title}\n${text}`) }
    case 'discord':
      return {
        content: `${title}\n${text}`.slice(0, DISCORD_CHARS),
        allowed_mentions: { parse: [] },
        flags: DISCORD_SUPPRESS_EMBEDS,
      }
    case 'ntfy':
      // https://docs.ntfy.sh/publish/#publish-as-json
      return {
        ...{ topic, title, message: text },
        priority: isUrgent ? NTFY_PRIORITY.urgent : NTFY_PRIORITY.usual,
      }
  }
}

const slackText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
