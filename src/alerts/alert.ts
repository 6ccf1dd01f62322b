/** What a destination is told: an alert, and the JSON in which it waits in the store. */

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

export const FORMATS = ['standard', 'slack', 'discord', 'ntfy'] as const
/** The form of a message to a URL. */
export type UrlFormat = (typeof FORMATS)[number]
export type Format = UrlFormat | 'inbox'

/** A message, the same at every attempt. */
export type Message = { id: string; type: string; occurredAt: number; content: AlertContent }
