/** The forms in which a URL is told of something: `label` for people, and what `--name` of a command adds. */
export const ALERT_FORMATS = {
  standard: { label: 'Standard Webhooks', adds: 'this URL, by Standard Webhooks' },
  slack: { label: 'Slack', adds: 'this incoming webhook of Slack' },
  discord: { label: 'Discord', adds: 'this webhook of Discord' },
  ntfy: { label: 'ntfy', adds: 'this topic of an ntfy server' },
} as const

export type UrlFormat = keyof typeof ALERT_FORMATS
/** An inbox of the service itself is told in the form of `standard`. */
export type AlertFormat = UrlFormat | 'inbox'

export const URL_FORMATS = Object.keys(ALERT_FORMATS) as UrlFormat[]
