/** Provisions WHISPER: reads of the ciphertext that was reserved with the quote. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Grant, Provisioning } from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import type { WhisperCapability } from './schema.ts'
import { insertWhisper, releaseCiphertext, restoreCiphertext } from './store.ts'

/** What the buyer chose. `revealAt` is unix milliseconds. */
export type WhisperTerms = { readLimit: number; revealAt: number | null }

export const WHISPER_PROVISIONING: Provisioning = {
  newPublicId: () => newId('whisper'),
  provision(grant) {
    const { readLimit, revealAt } = grant.terms as WhisperTerms
    return insertWhisper({
      publicId: grant.publicId,
      orderId: grant.orderId,
      readTokenHash: tokenHash(capability(grant).readToken),
      reads: readLimit,
      revealAt,
      createdAt: grant.settledAt,
      expiresAt: grant.expiresAt,
    })
  },
  capability,
  release: releaseCiphertext,
  restore: ({ orderId, clientNetwork, body }) =>
    restoreCiphertext({ orderId, clientNetwork, ciphertext: body }),
}

function capability(grant: Grant): WhisperCapability {
  return {
    product: 'whisper',
    publicId: grant.publicId,
    readToken: tokenFromSeed('whisper_read', grant.seed),
    expiresAt: rfc3339(grant.expiresAt),
  }
}
