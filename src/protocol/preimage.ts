/** The proof of a Lightning payment. */
import { hash } from 'node:crypto'
import { equalBytes, hexBytes } from '../lib/bytes.ts'

/** Whether `preimage` opens `paymentHash`, both 64 hex digits. Needs no node (BOLT 11). */
export function provesPayment(preimage: string, paymentHash: string): boolean {
  const bytes = hexBytes(preimage)
  const expected = hexBytes(paymentHash)
  if (bytes?.length !== 32 || expected?.length !== 32) return false
  return equalBytes(hash('sha256', bytes, 'buffer'), expected)
}

/** The payment hash that a preimage opens, or null for what is no preimage: 64 hex digits. */
export function paymentHashOf(preimage: string): string | null {
  const bytes = hexBytes(preimage)
  return bytes?.length === 32 ? hash('sha256', bytes) : null
}
