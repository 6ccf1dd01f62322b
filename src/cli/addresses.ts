/** The addresses of what is saved here. None of them has a token in it. */
import type { PulseStatus } from '../client/index.ts'

type Saved = { capability: { product: string; publicId: string }; baseUrl: string }

/** Where senders of webhooks reach an inbox. */
export const inboxAddress = ({ capability, baseUrl }: Saved): string =>
  `${baseUrl}/c/${capability.publicId}`

/** The address of an inbox for an answer in JSON. The other products have none. */
export const ingestUrlOf = (saved: Saved): { ingestUrl?: string } =>
  saved.capability.product === 'catch' ? { ingestUrl: inboxAddress(saved) } : {}

/** The page that opens a whisper. Its code is pasted there, and is never a part of the address. */
export const readingPage = (baseUrl: string): string => `${baseUrl}/read`

/** Where everybody sees a shared monitor: its page and its badge. Of any other, nothing. */
export function sharedAddresses(
  baseUrl: string,
  { publicStatusEnabled, publicStatusId }: PulseStatus,
): { statusUrl?: string; badgeUrl?: string } {
  if (!publicStatusEnabled) return {}
  return {
    statusUrl: `${baseUrl}/status/${publicStatusId}`,
    badgeUrl: `${baseUrl}/api/pulse/public/${publicStatusId}/badge.svg`,
  }
}
