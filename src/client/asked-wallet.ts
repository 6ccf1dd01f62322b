/**
 * The wallet of a purchase: which one it is, what it knows of each invoice, and what it may have spent. Its word is
 * checked here, and `payments.ts` decides what follows from it.
 */
import { hexBytes } from '../lib/bytes.ts'
import { messageOf } from '../lib/errors.ts'
import { sha256 } from '../lib/sha256.ts'
import { MayflyError } from './errors.ts'
import { disagrees, isSameInvoice, msatOf } from './offer.ts'
import { lastOf, type PurchaseRecord, type RecordedInvoice } from './record.ts'
import { type Wallet, type WalletAnswer, WalletError, type WalletPayment } from './wallet.ts'

/** A call of a wallet ends within this time, so a process that handed it an invoice may be in it still. */
const CALL_MS = 2 * 60 * 1000
/** The name of a wallet that has none. */
const UNNAMED = 'a wallet'

/** What one call of the SDK has for its wallet. */
type Call = { wallet?: Wallet | undefined; signal?: AbortSignal | undefined }

/** The wallet of a purchase, and its name. @throws MayflyError for another one than may have had it before. */
export async function walletOf(
  { state, wallet: before }: PurchaseRecord,
  call: Call,
): Promise<{ wallet: Wallet; id: string }> {
  const { wallet, signal } = call
  if (!wallet) throw outcomeUnknown(null)
  const id = (await wallet.id?.({ signal })) ?? UNNAMED
  if (before === id || (before === null && state === 'quoted')) return { wallet, id }
  const message =
    before === null
      ? 'this purchase was begun elsewhere, and nobody here knows which wallet may have paid it'
      : `this purchase was handed to ${before}, and is asked of no other wallet`
  throw outcomeUnknown(new WalletError(message, 'unknown'))
}

/** What a wallet knows of a purchase. What was paid is the last invoice of this record. */
export type KnownPayment =
  | { state: 'paid'; preimage: string; feeMsat?: number; record: PurchaseRecord }
  | Exclude<WalletAnswer, { state: 'paid' }>

/**
 * Asks the wallet about every invoice that the purchase was given. What counted as failed may be paid after all.
 * @throws MayflyError `invoice disagrees`.
 */
export async function lookUp(
  wallet: Wallet,
  record: PurchaseRecord,
  call: Call,
): Promise<KnownPayment> {
  const answers: KnownPayment[] = []
  for (const invoice of record.invoices) {
    const answer = await lookUpOne(wallet, invoice, call)
    if (answer.state === 'paid') {
      const others = record.invoices.filter((other) => other !== invoice)
      return { ...answer, record: { ...record, invoices: [...others, invoice] } }
    }
    answers.push(answer)
  }
  const pending = answers.find(({ state }) => state === 'pending')
  return pending ?? answers.at(-1) ?? { state: 'unknown' }
}

/** What the wallet knows of an invoice, with its proof checked. */
async function lookUpOne(
  wallet: Wallet,
  invoice: RecordedInvoice,
  { signal }: Call,
): Promise<WalletAnswer> {
  let answer: WalletAnswer
  try {
    answer = (await wallet.lookup?.(invoice.bolt11, { signal })) ?? { state: 'unknown' }
  } catch (cause) {
    // Asking pays nothing.
    throw new WalletError(messageOf(cause), 'not paid', { cause })
  }
  if (answer.state !== 'paid') return answer
  // Another invoice with this payment hash was paid, which is no payment of this one.
  if (answer.bolt11 !== undefined && !isSameInvoice(answer.bolt11, invoice.bolt11)) {
    throw disagrees()
  }
  if (await isProof(answer.preimage, invoice.paymentHash)) return answer
  throw new WalletError('the wallet says that it paid, and gives a wrong preimage', 'unknown')
}

/** Asks the wallet to pay, and checks its proof. @throws WalletError */
export async function payWith(
  wallet: Wallet,
  { bolt11, paymentHash }: RecordedInvoice,
  { signal }: Call,
): Promise<WalletPayment> {
  const paid = await wallet.pay(bolt11, { signal })
  if (await isProof(paid.preimage, paymentHash)) return paid
  throw new WalletError('the wallet did not prove its payment', 'unknown')
}

/** Whether the preimage, 64 hex digits, proves the payment. */
export async function isProof(preimage: string, paymentHash: string): Promise<boolean> {
  const bytes = /^[0-9a-f]{64}$/.test(preimage) ? hexBytes(preimage) : null
  return bytes !== null && (await sha256(bytes)) === paymentHash
}

/** The last invoice as the record has it while the wallet may pay it. */
export function handed(
  record: PurchaseRecord,
  { maxFeeMsat, keepsEveryAttempt }: Wallet,
  now: number,
): RecordedInvoice {
  const invoice = lastOf(record)
  const amountMsat = msatOf(invoice.amountSats)
  const costMsat = amountMsat + (maxFeeMsat?.(amountMsat) ?? 0)
  const before = record.state === 'paying' ? (invoice.reservedMsat ?? 0) : 0
  return {
    ...invoice,
    handedAt: new Date(now).toISOString(),
    // A wallet that forgets its attempts may pay each of them.
    reservedMsat: keepsEveryAttempt ? Math.max(before, costMsat) : before + costMsat,
  }
}

/** Whether a call that handed this invoice over may be under way still. */
export const isJustHanded = ({ handedAt }: RecordedInvoice, now: number): boolean =>
  handedAt !== undefined && now < Date.parse(handedAt) + CALL_MS

export const outcomeUnknown = (cause: unknown): MayflyError =>
  new MayflyError('payment outcome unknown', 0, { cause })
