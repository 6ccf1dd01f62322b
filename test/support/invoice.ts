import { encodeInvoice, type InvoiceFields } from '../../src/protocol/bolt11-sign.ts'

/** A signed invoice over 21 sats, with other fields where a test gives them. */
export function anInvoice(
  fields: Partial<Record<keyof InvoiceFields, unknown>> = {},
  privateKey = new Uint8Array(32).fill(7),
): string {
  const all = {
    network: 'regtest',
    amountMsat: 21_000,
    timestamp: Math.floor(Date.now() / 1000),
    expirySeconds: 900,
    paymentHash: 'ab'.repeat(32),
    paymentSecret: crypto.getRandomValues(new Uint8Array(32)),
    ...('descriptionHash' in fields ? {} : { description: 'Mayfly' }),
    ...fields,
  }
  return encodeInvoice(all as InvoiceFields, privateKey)
}
