/** Provisions WHISPER: reads of the ciphertext that was reserved with the quote. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Grant, Provisioning } from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import { bindSecret } from '../switches/store.ts'
import { insertReceipt } from './receipt-store.ts'
import type { WhisperCapability } from './schema.ts'
import { insertWhisper, releaseCiphertext, restoreCiphertext } from './store.ts'

/** What the buyer chose. */
export type WhisperTerms = {
  readLimit: number
  /** Unix milliseconds. */
  revealAt: number | null
  receipt?: true
  /** The id of the switch that must open it. It comes with a receipt. */
  revealWhen?: string
}

export const WHISPER_PROVISIONING: Provisioning = {
  newPublicId: () => newId('whisper'),
  provision(grant) {
    const { readLimit, revealAt, revealWhen } = grant.terms as WhisperTerms
    const { publicId, orderId, settledAt: createdAt, expiresAt } = grant
    const { readToken, receiptToken } = capability(grant)
    const times = { revealAt, createdAt, expiresAt }
    const hasReceipt = receiptToken !== undefined
    const hasSwitch = revealWhen !== undefined
    return [
      ...insertWhisper({
        publicId,
        orderId,
        ...times,
        hasReceipt,
        hasSwitch,
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
      ...(hasSwitch ? [bindSecret({ orderId, publicId, now: createdAt })] : []),
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
