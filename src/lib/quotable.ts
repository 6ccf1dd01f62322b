/** What may be told of a text that a Lightning node has written. */

const MAX_QUOTED_CHARACTERS = 200

/** A node's message, shortened, without words that are long enough to be a secret or an invoice. */
export function quotable(text: string): string {
  return text
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '…')
    .replaceAll(/[^\x20-\x7e…]/g, ' ')
    .slice(0, MAX_QUOTED_CHARACTERS)
}
