/** Provisions WHISPER: reads of the ciphertext that was reserved with the quote. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Grant, Provisioning } from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import { insertReceipt } from './receipt-store.ts'
import type { WhisperCapability } from './schema.ts'
import { insertWhisper, releaseCiphertext, restoreCiphertext } from './store.ts'

/** What the buyer chose. `revealAt` is unix milliseconds. Without a receipt the terms are as they ever were. */
export type WhisperTerms = { readLimit: number; revealAt: number | null; receipt?: true }

export const WHISPER_PROVISIONING: Provisioning = {
  newPublicId: () => newId('whisper'),
  provision(grant) {
    const { readLimit, revealAt } = grant.terms as WhisperTerms
    const { publicId, orderId, settledAt: createdAt, expiresAt } = grant
    const { readToken, receiptToken } = capability(grant)
    const times = { revealAt, createdAt, expiresAt }
    const hasReceipt = receiptToken !== undefined
    return [
      ...insertWhisper({
        ...{ publicId, orderId, ...times, hasReceipt },
        readTokenHash: tokenHash(readToken),
        reads: readLimit,
      }),
      ...(hasReceipt
        ? [
            insertReceipt({
              publicId,
              readLimit,
              ...times,
              receiptTokenHash: tokenHash(receiptToken),
            }),
          ]
        : []),
    ]
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
    ...((grant.terms as WhisperTerms).receipt
      ? { receiptToken: tokenFromSeed('whisper_receipt', grant.seed) }
      : {}),
    expiresAt: rfc3339(grant.expiresAt),
  }
}
