/**
 * The ledger of a stand-in node: real, signed regtest invoices, and which are paid. It is not a Lightning
 * node: a payment is a function call.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../../src/lib/clock.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { type InvoiceFields, publicKeyOf } from '../../../src/protocol/bolt11-sign.ts'
import { anInvoice } from '../invoice.ts'

export type LedgerInvoice = {
  bolt11: string
  paymentHash: string
  preimage: string
  amountMsat: number
  memo: string
  /** In unix milliseconds. */
  createdAt: number
  expiresAt: number
  /** How often the invoice was paid. A good node allows one payment. */
  timesPaid: number
  /** The number of its settlement, from 1. It is 0 before. */
  settleIndex: number
}

export type Ledger = ReturnType<typeof createLedger>

const KEY = new Uint8Array(32).fill(7)

/** The public key that signs the invoices of every ledger. */
export const LEDGER_NODE_ID = publicKeyOf(KEY)

export function createLedger(clock: Clock) {
  const invoices = new Map<string, LedgerInvoice>()
  const settled: LedgerInvoice[] = []
  const listeners = new Set<(invoice: LedgerInvoice) => void>()

  function settle(invoice: LedgerInvoice): void {
    invoice.timesPaid += 1
    if (invoice.timesPaid > 1) return
    settled.push(invoice)
    invoice.settleIndex = settled.length
    for (const listener of listeners) listener(invoice)
  }

  return {
    /** The invoices in the order of their settlements. */
    settled,
    /** Makes an invoice. `changes` are of its text alone. */
    make(
      ask: { amountMsat: number; memo: string; expirySeconds: number },
      changes: Partial<Record<keyof InvoiceFields, unknown>> = {},
    ): LedgerInvoice {
      const { amountMsat, memo, expirySeconds } = ask
      const preimage = randomBytes(32)
      const paymentHash = createHash('sha256').update(preimage).digest('hex')
      const timestamp = Math.floor(clock.now() / 1000)
      const described = 'descriptionHash' in changes ? {} : { description: memo }
      const fields = { amountMsat, timestamp, expirySeconds, paymentHash, ...described }
      const bolt11 = anInvoice({ ...fields, ...changes }, KEY)
      const invoice = {
        bolt11,
        paymentHash,
        preimage: preimage.toString('hex'),
        amountMsat,
        memo,
        createdAt: timestamp * 1000,
        expiresAt: (timestamp + expirySeconds) * 1000,
        timesPaid: 0,
        settleIndex: 0,
      }
      invoices.set(paymentHash, invoice)
      return invoice
    },
    find: (paymentHash: string) => invoices.get(paymentHash),
    /** The number of invoices that were made. */
    made: () => invoices.size,
    /** Pays the invoice and returns its preimage. @throws if it is unknown, paid or expired. */
    pay(bolt11: string): string {
      const invoice = invoices.get(decodeInvoice(bolt11).paymentHash)
      if (!invoice) throw new Error('no route')
      if (clock.now() >= invoice.expiresAt) throw new Error('the invoice has expired')
      settle(invoice)
      return invoice.preimage
    },
    /** Settles an invoice whose payment was under way when it expired. */
    settleLate(paymentHash: string): void {
      const invoice = invoices.get(paymentHash)
      if (!invoice) throw new Error('no such invoice')
      settle(invoice)
    },
    /** Calls the listener at each settlement, until the returned function is called. */
    onSettled(listener: (invoice: LedgerInvoice) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
