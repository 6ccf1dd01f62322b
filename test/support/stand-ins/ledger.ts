/**
 * The books of a stand-in node: real, signed regtest invoices, and who has paid them. Nothing here is
 * a Lightning node; a payment is a call.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../../src/lib/clock.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { encodeInvoice, publicKeyOf } from '../../../src/protocol/bolt11-sign.ts'

export type LedgerInvoice = {
  bolt11: string
  paymentHash: string
  preimage: string
  amountMsat: number
  memo: string
  /** Unix milliseconds. */
  createdAt: number
  expiresAt: number
  /** How often it was paid; no good node lets it be more than 1. */
  timesPaid: number
  /** The number of its settlement, from 1; 0 before. */
  settleIndex: number
}

export type Ledger = {
  make(ask: { amountMsat: number; memo: string; expirySeconds: number }): LedgerInvoice
  find(paymentHash: string): LedgerInvoice | undefined
  /** The preimage. @throws where the invoice is unknown, paid or expired. */
  pay(bolt11: string): string
  /** A payment that was under way when the invoice expired, and comes through now. */
  settleLate(paymentHash: string): void
  /** Settled invoices in their order. */
  settled: LedgerInvoice[]
  /** How many invoices were made. */
  made(): number
  /** Called at each settlement until the function that comes back is called. */
  onSettled(listener: (invoice: LedgerInvoice) => void): () => void
}

const KEY = new Uint8Array(32).fill(7)

/** Who signs the invoices of every ledger. */
export const LEDGER_NODE_ID = publicKeyOf(KEY)

export function createLedger(clock: Clock): Ledger {
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
    settled,
    make({ amountMsat, memo, expirySeconds }) {
      const preimage = randomBytes(32)
      const paymentHash = createHash('sha256').update(preimage).digest('hex')
      const timestamp = Math.floor(clock.now() / 1000)
      const bolt11 = encodeInvoice(
        {
          network: 'regtest',
          amountMsat,
          timestamp,
          expirySeconds,
          paymentHash,
          paymentSecret: randomBytes(32),
          description: memo,
        },
        KEY,
      )
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
    find: (paymentHash) => invoices.get(paymentHash),
    made: () => invoices.size,
    pay(bolt11) {
      const invoice = invoices.get(decodeInvoice(bolt11).paymentHash)
      if (!invoice) throw new Error('no route')
      if (clock.now() >= invoice.expiresAt) throw new Error('the invoice has expired')
      settle(invoice)
      return invoice.preimage
    },
    settleLate(paymentHash) {
      const invoice = invoices.get(paymentHash)
      if (!invoice) throw new Error('no such invoice')
      settle(invoice)
    },
    onSettled(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
