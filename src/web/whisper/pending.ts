/**
 * The unfinished purchase of a whisper in this tab. Phones discard a tab while its wallet is in front, so what claims
 * and opens the whisper is stored from before the invoice until the code was taken. The content is not: the service
 * has its encrypted bytes already.
 */
import type { PaymentQuote } from '../../client/index.ts'
import { base64Bytes, base64url } from '../../lib/bytes.ts'
import { isPlanId } from '../../lib/product-names.ts'
import { KEY_BYTES } from '../../protocol/whisper-code.ts'
import type { Terms } from '../buying/terms.ts'

export type PendingWhisper = {
  terms: Terms & { product: 'whisper' }
  idempotencyKey: string
  /** The key of the envelope. It is only in this tab, and then in the share code. */
  key: Uint8Array
  hasPassword: boolean
  /** A password that the page made, since nobody knows it by heart. One that was typed is not stored. */
  suggested: string | null
  readLimit: number
  revealAt: Date | null
  /** Asked for with the order, so a repeat must ask for it too. */
  receipt: boolean
  /** The switch of the order, or null. */
  revealWhen: string | null
  /** The unpaid order. Null before the service has answered: then there is no invoice, and nothing was paid. */
  quote: PaymentQuote | null
  preimage?: string
}

const NAME = 'mayfly.sealing'

export function storePending({ key, ...pending }: PendingWhisper): void {
  sessionStorage.setItem(NAME, JSON.stringify({ ...pending, key: base64url(key) }))
}

/** Wipes the keys: the code was taken, or there is nothing to collect. */
export function wipePending(): void {
  sessionStorage.removeItem(NAME)
}

/** The purchase that a reload interrupted, or null if no invoice was shown. */
export function pendingWhisper(): (PendingWhisper & { quote: PaymentQuote }) | null {
  try {
    return pendingIn(JSON.parse(sessionStorage.getItem(NAME) ?? 'null'))
  } catch {
    return null
  }
}

type Stored = Partial<Record<keyof PendingWhisper, unknown>>

function pendingIn(stored: Stored | null): (PendingWhisper & { quote: PaymentQuote }) | null {
  const { idempotencyKey, hasPassword, suggested, readLimit, revealAt, preimage } = stored ?? {}
  const { receipt, revealWhen } = stored ?? {}
  const terms = stored?.terms as Partial<Terms> | undefined
  const quote = stored?.quote as Partial<PaymentQuote> | null | undefined
  const key = typeof stored?.key === 'string' ? base64Bytes(stored.key) : null
  const isWhole =
    key?.length === KEY_BYTES &&
    isPlanId(terms?.planId) &&
    typeof terms.priceSats === 'number' &&
    typeof idempotencyKey === 'string' &&
    typeof readLimit === 'number' &&
    typeof quote?.orderId === 'string' &&
    typeof quote.bolt11 === 'string'
  if (!isWhole) return null
  return {
    terms: terms as Terms & { product: 'whisper' },
    idempotencyKey,
    key,
    hasPassword: hasPassword === true,
    suggested: typeof suggested === 'string' ? suggested : null,
    readLimit,
    revealAt: typeof revealAt === 'string' ? new Date(revealAt) : null,
    receipt: receipt === true,
    revealWhen: typeof revealWhen === 'string' ? revealWhen : null,
    quote: quote as PaymentQuote,
    ...(typeof preimage === 'string' ? { preimage } : {}),
  }
}
