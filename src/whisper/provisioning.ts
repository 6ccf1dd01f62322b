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
    const { publicId, orderId, settledAt, expiresAt } = grant
    const { readToken, receiptToken } = capability(grant)
    const common = { public_id: publicId, reveal_at: revealAt, expires_at: expiresAt }
    const statements = insertWhisper({
      ...common,
      order_id: orderId,
      read_token_hash: tokenHash(readToken),
      reads_left: readLimit,
      has_receipt: Number(receiptToken !== undefined),
      has_switch: Number(revealWhen !== undefined),
    })
    if (receiptToken !== undefined) {
      const receipt_token_hash = tokenHash(receiptToken)
      const facts = { receipt_token_hash, read_limit: readLimit, created_at: settledAt }
      statements.push(insertReceipt({ ...common, ...facts }))
    }
    if (revealWhen !== undefined) {
      statements.push(bindSecret({ orderId, publicId, now: settledAt }))
    }
    return statements
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
