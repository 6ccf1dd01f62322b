/** Invoices for the tests of BOLT 11: from vectors, and with any fields. */
import assert from 'node:assert/strict'
import { hex, hexBytes, utf8 } from '../../src/lib/bytes.ts'
import { bytesToWords, decodeBech32, encodeBech32 } from '../../src/protocol/bech32.ts'
import { decodeInvoice, InvalidInvoice, type Invoice, TAG } from '../../src/protocol/bolt11.ts'
import { type InvoiceFields, payeeOf } from '../../src/protocol/bolt11-sign.ts'
import vectors from '../vectors/bolt11.json' with { type: 'json' }

export type OwnVector = (typeof vectors.own)[number]
export type Field = [tag: number, words: ArrayLike<number>]

// The order of secp256k1. A signature with ORDER - s is valid too.
export const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

export const SIGNATURE_WORDS = 104
export const HASH = bytesToWords(new Uint8Array(32).fill(7))
export const KEY = bytesToWords(new Uint8Array(33).fill(2))
export const TEXT = bytesToWords(utf8('inbox'))
export const P: Field = [TAG.paymentHash, HASH]
export const S: Field = [TAG.paymentSecret, HASH]
export const D: Field = [TAG.description, TEXT]
export const H: Field = [TAG.descriptionHash, HASH]
export const N: Field = [TAG.payee, KEY]

export function aText(
  ask: Partial<Record<'timestamp' | 'tail', number[]>> & {
    prefix?: string
    fields: Field[]
    recoveryId?: number
  },
): string {
  const { prefix = 'lnbcrt', timestamp = [1, 21, 20, 19, 20, 16, 0], recoveryId = 0 } = ask
  const fields = ask.fields.flatMap(([tag, words]) => [
    tag,
    words.length >>> 5,
    words.length & 31,
    ...Array.from(words),
  ])
  const signature = bytesToWords(Uint8Array.of(...new Uint8Array(64).fill(1), recoveryId))
  const words = [...timestamp, ...fields, ...(ask.tail ?? []), ...signature]
  return encodeBech32(prefix, Uint8Array.from(words))
}

export function featureField(bit: number): Field {
  const words = new Uint8Array(Math.floor(bit / 5) + 1)
  words[0] = 1 << (bit % 5)
  return [TAG.features, words]
}

export function invoiceOf(vector: OwnVector): Invoice {
  const { name, note, invoice, preimage, namedPayee, payee, privateKey, ...rest } = vector
  return {
    ...rest,
    bolt11: invoice,
    network: networkOf(vector),
    payee: namedPayee,
    expiresAt: (vector.timestamp + vector.expirySeconds) * 1000,
    recoveryId: vector.recoveryId === 0 ? 0 : 1,
    signature: bytes(vector.signature),
    signedData: bytes(vector.signedData),
  }
}

export function fieldsOf(vector: OwnVector): InvoiceFields {
  const { amountMsat, timestamp, expirySeconds, paymentHash, namedPayee } = vector
  return {
    network: networkOf(vector),
    amountMsat,
    timestamp,
    expirySeconds,
    paymentHash,
    paymentSecret: bytes(vector.paymentSecret),
    ...(namedPayee === null ? {} : { payee: namedPayee }),
    ...(vector.descriptionHash === null
      ? { description: vector.description ?? '' }
      : { descriptionHash: vector.descriptionHash }),
  }
}

export const networkOf = (vector: OwnVector) => vector.network as Invoice['network']

export function described(description: string): InvoiceFields {
  const { descriptionHash, ...fields } = fieldsOf(first())
  return { ...fields, description }
}

export function own(name: string): OwnVector {
  const vector = vectors.own.find((one) => one.name === name)
  assert.ok(vector)
  return vector
}

export const first = () => own('regtest-21-sat')

export function adversarial(name: string): string {
  const vector = vectors.adversarial.find((one) => one.name === name)
  assert.ok(vector)
  return vector.invoice
}

export function withHighS(invoice: Invoice): Invoice {
  const s = ORDER - BigInt(`0x${hex(invoice.signature.subarray(32))}`)
  const signature = bytes(hex(invoice.signature.subarray(0, 32)) + s.toString(16).padStart(64, '0'))
  return { ...invoice, signature, recoveryId: invoice.recoveryId === 0 ? 1 : 0 }
}

export function parts(text: string): { prefix: string; words: Uint8Array } {
  const read = decodeBech32(text)
  assert.ok(read)
  return read
}

export function bytes(text: string): Uint8Array<ArrayBuffer> {
  const read = hexBytes(text)
  assert.ok(read)
  return read
}

export function readsOrRefuses(text: string): Invoice | null {
  try {
    const invoice = decodeInvoice(text)
    payeeOrNull(invoice)
    return invoice
  } catch (error) {
    assert.ok(error instanceof InvalidInvoice)
    return null
  }
}

export function payeeOrNull(invoice: Invoice): string | null {
  try {
    return payeeOf(invoice)
  } catch (error) {
    assert.ok(error instanceof InvalidInvoice)
    return null
  }
}

export function refuses(text: string, reason: string | undefined): void {
  assert.throws(() => decodeInvoice(text), invalid(reason))
}

export function invalid(reason: string | undefined) {
  return (error: unknown) => {
    assert.ok(error instanceof InvalidInvoice)
    assert.equal(error.message, reason)
    return true
  }
}
