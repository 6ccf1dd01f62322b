/** Suspending a WHISPER: nobody reads it and no read is spent. Its bytes stay until its end. */
import type { Takedown } from '../http/product.ts'

export const WHISPER_TAKEDOWN: Takedown = {
  kind: 'whisper',
  suspend: (publicId, now) => ({
    text: `update whisper set suspended_at = $2
      where public_id = $1 and suspended_at is null and expires_at > $2`,
    values: [publicId, now],
    expect: 1,
  }),
  resume: (publicId) => ({
    text: 'update whisper set suspended_at = null where public_id = $1 and suspended_at is not null',
    values: [publicId],
    expect: 1,
  }),
}
