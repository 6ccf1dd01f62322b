/** What the destinations of a WHISPER are told: each read, and that it expired. In which words, and when. */
import { randomInt } from 'node:crypto'
import type { Alert } from '../alerts/store.ts'
import type { AlertContent } from '../lib/alert-formats.ts'
import { rfc3339Seconds } from '../lib/clock.ts'
import { READS_LEFT, READS_SPENT, wholeMinute } from './receipt-store.ts'

/**
 * A read is told 60 to 120 seconds later, at random: whoever sees messages arrive must not learn who has just read.
 * Five seconds are left for the look that finds it and for the request.
 */
const READ_TOLD_AFTER_MS = { least: 60_000, most: 115_000 }

/** Part of the unit that spends the read. It says the minute, like the receipt. */
export function readAlert(publicId: string, now: number): Alert {
  const { least, most } = READ_TOLD_AFTER_MS
  const readAt = wholeMinute(now)
  return {
    type: 'whisper.read',
    occurredAt: readAt,
    notBefore: now + randomInt(least, most + 1),
    // It has the sum of the reads, so the last of several says what the others did.
    replaces: true,
    counts: { readsSpent: READS_SPENT, readsLeft: READS_LEFT },
    content: {
      data: { publicId, readsSpent: '{{readsSpent}}', readsLeft: '{{readsLeft}}' },
      title: 'A whisper was read',
      text: `${publicId} was read at ${rfc3339Seconds(readAt)}. Reads spent: {{readsSpent}}, left: {{readsLeft}}.`,
      isUrgent: false,
    },
  }
}

/** Part of the unit that deletes an expired WHISPER. */
export const expiredAlert = (publicId: string, expiredAt: number): Alert => ({
  type: 'whisper.expired',
  occurredAt: expiredAt,
  replaces: false,
  counts: { readsSpent: READS_SPENT },
  content: {
    data: { publicId, readsSpent: '{{readsSpent}}', readsLeft: 0 },
    title: 'A whisper has expired',
    text: `Nobody can read ${publicId} any more. Reads spent: {{readsSpent}}.`,
    isUrgent: false,
  },
})

/** What a test says. */
export const testAlert = ({ public_id: publicId }: { public_id: string }): AlertContent => ({
  data: { publicId },
  title: 'A whisper: test',
  text: `This destination will be notified when ${publicId} is read, and when it expires.`,
  isUrgent: false,
})
