/** Invoices of a payee who is nobody. */
import { encodeInvoice } from '../../src/protocol/bolt11-sign.ts'

export const anInvoice = (amountMsat: number): string =>
  encodeInvoice(
    {
      network: 'regtest',
      amountMsat,
      timestamp: Math.floor(Date.now() / 1000),
      expirySeconds: 900,
      paymentHash: 'ab'.repeat(32),
      paymentSecret: new Uint8Array(32),
      description: 'an inbox',
    },
    new Uint8Array(32).fill(1),
  )
