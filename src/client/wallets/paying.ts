/** The payment logic that all wallets share, so that no invoice is paid twice. */
import { unlessAborted } from '../../lib/abort.ts'
import { codeOf } from '../../lib/errors.ts'
import { reasonOf } from '../../lib/reason.ts'
import { decodeInvoice, InvalidInvoice, type Invoice } from '../../protocol/bolt11.ts'
import { isProof } from '../asked-wallet.ts'
import { wait } from '../wait.ts'
import { type Wallet, type WalletAnswer, WalletError, type WalletPayment } from '../wallet.ts'
import { NodeRefused } from './node-fetch.ts'

/**
 * A payment as its node reports it. `none`: the node knows of no attempt. `failed`: no attempt can
 * succeed any more. `preimage` is checked here, not by the node's adapter. `feeMsat` is what the node says of
 * the fee, if anything, and `bolt11` the invoice that it paid.
 */
export type Payment =
  | { state: 'paid'; preimage: string; feeMsat?: unknown; bolt11?: unknown }
  | { state: 'pending' }
  | { state: 'failed'; reason: string }
  | { state: 'none' }

/** A node's calls. They throw if the node is unreachable or its answer was lost. */
export type Node = {
  /** The name in errors. */
  name: string
  /** Whether the node refuses a second payment for one hash, even while the first is pending. */
  refusesRepeats: boolean
  /** Whether the node, until its call returns, retries payments that its look-up calls failed. */
  triesAgain?: true
  /** Its kind, and its own id or its address, without a secret: what was handed to it is handed to no other. */
  id: string
  /** The right without which a payment cannot be looked up, if it is missing. */
  lacks?(): string | null
  /** Looks up the payments for this hash. */
  lookup(invoice: PayableInvoice, signal: AbortSignal): Promise<Payment>
  /** Asks the node to pay. `failed` for any refusal, which is then looked up. */
  send(invoice: PayableInvoice, maxFeeMsat: number, signal: AbortSignal): Promise<Payment>
}

export type PayableInvoice = Invoice & { amountMsat: number }

/** The options that the wallets of real nodes share. */
export type PayingOptions = {
  /** The maximum routing fee, in satoshis. Default: 5 % of the amount, but at least 10. */
  maxFeeSats?: number
  /** How long to wait for a payment, in milliseconds. Default: 60 000. */
  timeoutMs?: number
}

const TIMEOUT_MS = 60_000
/** The node gives up a little before the wallet stops waiting, so that its final answer arrives. */
const MAX_SEND_SECONDS = 50
const SEND_MARGIN_SECONDS = 5
const LEAST_MAX_FEE_MSAT = 10_000
const FEE_SHARE = 0.05

// How long to look up a payment after a lost answer. If the node does not know it by then, the
// request never reached it, or the node is very slow: the outcome is unknown.
const LOST_MS = 5_000
const POLL_SECONDS = 0.5

/** Looks the payment up, sends it only if no payment is under way, and checks the proof of it. */
export function payingWallet(node: Node, options: PayingOptions = {}): Wallet {
  const { timeoutMs = TIMEOUT_MS, maxFeeSats } = options
  /** Payments with an unknown outcome. For these, an unreachable node does not mean `not paid`. */
  const leftOpen = new Set<string>()
  /** The last call for each hash. The next one waits for it, and then looks its outcome up. */
  const turns = new Map<string, Promise<unknown>>()

  async function pay(bolt11: string, { signal }: { signal?: AbortSignal | undefined } = {}) {
    const invoice = readInvoice(bolt11)
    if (signal?.aborted) throw notPaid('the payment was cancelled before it was sent')
    const limit = AbortSignal.timeout(timeoutMs)
    const until = signal ? AbortSignal.any([limit, signal]) : limit
    const { paymentHash } = invoice
    const turn = (turns.get(paymentHash) ?? Promise.resolve()).then(() => settle(invoice, until))
    const ended = turn.catch(() => {})
    turns.set(paymentHash, ended)
    try {
      const paid = await turn
      leftOpen.delete(paymentHash)
      return paid
    } catch (error) {
      if (error instanceof WalletError && error.outcome === 'unknown') leftOpen.add(paymentHash)
      throw error
    } finally {
      if (turns.get(paymentHash) === ended) turns.delete(paymentHash)
    }
  }

  const ask = (invoice: PayableInvoice, until: AbortSignal): Promise<Payment> =>
    unlessAborted(until, node.lookup(invoice, until))

  async function settle(invoice: PayableInvoice, until: AbortSignal): Promise<WalletPayment> {
    const before = await lookUpFirst(invoice, until)
    if (before.state === 'paid') return proven(invoice, before)
    if (before.state === 'pending') return follow(invoice, until, { wasLost: false, before })
    // Some wallets do not report a payment before it is complete, and would pay again.
    if (before.state === 'none' && leftOpen.has(invoice.paymentHash) && !node.refusesRepeats) {
      throw unknown(`${node.name} was asked to pay before, and says nothing of it${lacking()}`)
    }
    const maxFeeMsat = feeLimit(invoice.amountMsat)
    let sent: Payment
    try {
      sent = await unlessAborted(until, node.send(invoice, maxFeeMsat, until))
    } catch {
      return follow(invoice, until, { wasLost: true, before })
    }
    if (sent.state === 'paid') return proven(invoice, sent)
    if (sent.state !== 'failed') return follow(invoice, until, { wasLost: false, before })
    return afterRefusal(invoice, sent.reason, before)
  }

  async function lookup(
    bolt11: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<WalletAnswer> {
    const invoice = readInvoice(bolt11)
    const limit = AbortSignal.timeout(LOST_MS)
    const until = signal ? AbortSignal.any([limit, signal]) : limit
    let known: Payment
    try {
      known = await ask(invoice, until)
    } catch (error) {
      throw unknown(`${node.name} could not be asked (${failureOf(error)})`)
    }
    // A payment that its node tries again has failed when that call ends, and nobody knows when it does.
    const isOpen = known.state === 'failed' && node.triesAgain
    if (known.state === 'none' || isOpen) return { state: 'unknown' }
    if (known.state !== 'paid') return { state: known.state }
    const named = textIn(known.bolt11)
    return { state: 'paid', ...(await proven(invoice, known)), ...named }
  }

  async function lookUpFirst(invoice: PayableInvoice, until: AbortSignal): Promise<Payment> {
    try {
      return await ask(invoice, until)
    } catch (error) {
      const message = `${node.name} could not be asked, so nothing was sent (${failureOf(error)})`
      throw leftOpen.has(invoice.paymentHash) ? unknown(message) : notPaid(message)
    }
  }

  /** A refusal may mean "already paid" or "under way", so the payment is looked up. */
  async function afterRefusal(
    invoice: PayableInvoice,
    reason: string,
    before: Payment,
  ): Promise<WalletPayment> {
    // The look-up and what follows it have this time together.
    const until = AbortSignal.timeout(LOST_MS)
    const after = await lookUpOnce(invoice)
    if (after === null) throw unknown(`${node.name} said "${reason}" and then nothing more`)
    if (after.state === 'paid') return proven(invoice, after)
    if (after.state === 'pending') return follow(invoice, until, { wasLost: false, before })
    throw notPaid(`${node.name} did not pay: ${reason}`)
  }

  /** Polls until the payment is final at the node, or time is up. Never cancels the payment. */
  async function follow(
    invoice: PayableInvoice,
    until: AbortSignal,
    { wasLost, before }: { wasLost: boolean; before: Payment },
  ): Promise<WalletPayment> {
    // At least one look-up is made, even if time is up.
    const stop = AbortSignal.any([until, ...(wasLost ? [AbortSignal.timeout(LOST_MS)] : [])])
    for (;;) {
      const now = await lookUpOnce(invoice)
      if (now?.state === 'paid') return proven(invoice, now)
      // A failed attempt counts only if it is new: an older one says nothing about this payment.
      const isNew = before.state === 'none' && !node.triesAgain
      if (now?.state === 'failed' && (!wasLost || isNew)) {
        throw notPaid(`${node.name} did not pay: ${now.reason}`)
      }
      const isUnderWay = now?.state === 'pending'
      const end = isUnderWay ? until : stop
      if (end.aborted) {
        throw unknown(
          isUnderWay
            ? `${node.name} is still paying`
            : `${node.name} was asked to pay, and its answer was lost${lacking()}`,
        )
      }
      await wait(POLL_SECONDS, end).catch(() => {})
    }
  }

  /** Null without an answer. */
  const lookUpOnce = (invoice: PayableInvoice): Promise<Payment | null> =>
    ask(invoice, AbortSignal.timeout(LOST_MS)).catch(() => null)

  async function proven(
    invoice: PayableInvoice,
    { preimage, feeMsat }: Payment & { state: 'paid' },
  ): Promise<WalletPayment> {
    const proof = await provenPreimage(invoice, preimage)
    if (proof === null) throw unknown(`${node.name} says that it paid, and gives a wrong preimage`)
    return { preimage: proof, ...feeOf(feeMsat) }
  }

  const lacking = (): string => {
    const right = node.lacks?.() ?? null
    return right === null ? '' : `; ${right}`
  }

  const feeLimit = (amountMsat: number): number =>
    maxFeeSats === undefined ? defaultMaxFee(amountMsat) : maxFeeSats * 1000

  return {
    pay,
    lookup,
    keepsEveryAttempt: node.refusesRepeats,
    id: async () => node.id,
    maxFeeMsat: feeLimit,
  }
}

/** The preimage in lower case if its SHA-256 is the invoice's payment hash (BOLT 11), else null. */
export async function provenPreimage(invoice: Invoice, preimage: string): Promise<string | null> {
  const proof = preimage.toLowerCase()
  return (await isProof(proof, invoice.paymentHash)) ? proof : null
}

/** Reads an invoice that can be paid as it is. @throws WalletError for any other. */
export function readInvoice(bolt11: string): PayableInvoice {
  try {
    const invoice = decodeInvoice(bolt11)
    const { amountMsat } = invoice
    if (amountMsat !== null) return { ...invoice, amountMsat }
  } catch (error) {
    if (error instanceof InvalidInvoice)
      throw notPaid(`the invoice is unreadable: ${error.message}`)
    throw error
  }
  throw notPaid('the invoice names no amount')
}

export const notPaid = (message: string): WalletError => new WalletError(message, 'not paid')

export const unknown = (message: string): WalletError => new WalletError(message, 'unknown')

/** The node's message, or only the error's kind, since its text may quote a URL with a password. */
export function failureOf(error: unknown): string {
  if (error instanceof NodeRefused) return error.message
  if (!(error instanceof Error)) return 'unknown error'
  return reasonOf(error) ?? (codeOf(error.cause) || error.name)
}

/** How long a node may try to pay, in seconds. */
export function sendSeconds({ timeoutMs = TIMEOUT_MS }: PayingOptions): number {
  const seconds = Math.min(MAX_SEND_SECONDS, timeoutMs / 1000 - SEND_MARGIN_SECONDS)
  return Math.floor(Math.max(1, seconds))
}

/** A fee as nodes write it, a whole number or its digits. Anything else says nothing. */
function feeOf(value: unknown): { feeMsat?: number } {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && /^\d+$/.test(value))
  const feeMsat = isNumber ? Number(value) : Number.NaN
  return Number.isSafeInteger(feeMsat) && feeMsat >= 0 ? { feeMsat } : {}
}

/** Payments without an invoice have none, or an empty one. */
const textIn = (bolt11: unknown): { bolt11?: string } =>
  typeof bolt11 === 'string' && bolt11 !== '' ? { bolt11 } : {}

/** Which node it is, by its address. Its rights do not let us ask for its own id. */
export const nodeAt = (name: string, url: string): string => `${name} at ${new URL(url).host}`

function defaultMaxFee(amountMsat: number): number {
  return Math.max(LEAST_MAX_FEE_MSAT, Math.floor(amountMsat * FEE_SHARE))
}
