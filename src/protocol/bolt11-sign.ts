/** The signature of a Lightning invoice (BOLT 11): signing an invoice, and finding its payee. */
import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Curve from 'tiny-secp256k1'
import { concat, hex, hexBytes, utf8 } from '../lib/bytes.ts'
import { bytesToWords, encodeBech32 } from './bech32.ts'
import {
  DEFAULT_EXPIRY_SECONDS,
  InvalidInvoice,
  type Invoice,
  type InvoiceNetwork,
  invoicePrefix,
  signedData,
  TAG,
  TIMESTAMP_WORDS,
} from './bolt11.ts'

// 1023 words of five bits: the largest length that a field can have.
const MAX_DESCRIPTION_BYTES = 639

const MAX_SECONDS = 2 ** 35 - 1

// The default without a `c` field; BOLT 11 asks writers to include the field anyway.
const MIN_FINAL_CLTV = 18

// Bits 8 (onion format) and 14 (payment secret), both required: BOLT 9.
const FEATURES = [16, 8, 0]

export type InvoiceFields = {
  network: InvoiceNetwork
  /** Null lets the payer choose. */
  amountMsat: number | null
  /** Unix seconds. */
  timestamp: number
  expirySeconds: number
  /** Hex. */
  paymentHash: string
  paymentSecret: Uint8Array
  /** Hex of the signing key's public key, for an `n` field. */
  payee?: string
} & (
  | { description: string; descriptionHash?: never }
  | { descriptionHash: string; description?: never }
)

/** The signed invoice (BOLT 11). @throws RangeError for a value that an invoice cannot express. */
export function encodeInvoice(fields: InvoiceFields, privateKey: Uint8Array): string {
  if (fields.amountMsat !== null) requireInteger('amountMsat', fields.amountMsat)
  requireInteger('timestamp', fields.timestamp, MAX_SECONDS)
  requireInteger('expirySeconds', fields.expirySeconds, MAX_SECONDS)

  const prefix = invoicePrefix(fields.network, fields.amountMsat)
  const words = concat(
    numberWords(fields.timestamp, TIMESTAMP_WORDS),
    bytesField(TAG.paymentHash, sized('paymentHash', hexBytes(fields.paymentHash), 32)),
    bytesField(TAG.paymentSecret, sized('paymentSecret', fields.paymentSecret, 32)),
    descriptionField(fields),
    fields.expirySeconds === DEFAULT_EXPIRY_SECONDS
      ? new Uint8Array()
      : field(TAG.expiry, numberWords(fields.expirySeconds)),
    field(TAG.minFinalCltv, numberWords(MIN_FINAL_CLTV)),
    payeeField(fields.payee, privateKey),
    field(TAG.features, FEATURES),
  )
  const { signature, recoveryId } = curve().signRecoverable(
    digest(signedData(prefix, words)),
    privateKey,
  )
  return encodeBech32(
    prefix,
    concat(words, bytesToWords(concat(signature, Uint8Array.of(recoveryId)))),
  )
}

/**
 * Hex of the public key that signed the invoice. An `n` field must contain that key, and then s must be
 * low (BOLT 11). Without that field the key is recovered, and proves nothing unless it is the expected one.
 * @throws InvalidInvoice if the signature is invalid, or not made by the key in the `n` field.
 */
export function payeeOf(invoice: Invoice): string {
  const payee = invoice.payee === null ? recoveredKey(invoice) : namedKey(invoice, invoice.payee)
  if (payee === null) throw new InvalidInvoice('signature is wrong')
  return payee
}

/** Hex of the public key that `payeeOf` finds in the invoices of this private key; null if it is invalid. */
export function publicKeyOf(privateKey: Uint8Array): string | null {
  const key = curve().isPrivate(privateKey) ? curve().pointFromScalar(privateKey, true) : null
  return key && hex(key)
}

function recoveredKey({ signedData, signature, recoveryId }: Invoice): string | null {
  const { recover } = curve()
  try {
    const key = recover(digest(signedData), signature, recoveryId, true)
    return key && hex(key)
  } catch {
    // The library throws for an r or s that is out of range or not on the curve.
    return null
  }
}

function namedKey({ signedData, signature }: Invoice, payee: string): string | null {
  const key = hexBytes(payee)
  const { verify } = curve()
  try {
    return key !== null && verify(digest(signedData), key, signature, true) ? payee : null
  } catch {
    // The library throws for a key that is not a point, and for an r or s that is out of range.
    return null
  }
}

/**
 * The library, loaded for the first signature: its WebAssembly takes 5 MB of memory, and a service with a real node
 * signs nothing. Never called where an error means that a signature is wrong.
 */
function curve(): typeof Curve {
  loaded ??= createRequire(import.meta.url)('tiny-secp256k1') as typeof Curve
  return loaded
}
let loaded: typeof Curve | null = null

function digest(data: Uint8Array): Uint8Array {
  return hash('sha256', data, 'buffer')
}

function descriptionField({ description, descriptionHash }: InvoiceFields): Uint8Array {
  if (description === undefined) {
    return bytesField(TAG.descriptionHash, sized('descriptionHash', hexBytes(descriptionHash), 32))
  }
  const bytes = utf8(description)
  if (bytes.length > MAX_DESCRIPTION_BYTES) {
    throw new RangeError(`description must be at most ${MAX_DESCRIPTION_BYTES} bytes`)
  }
  return bytesField(TAG.description, bytes)
}

function payeeField(payee: string | undefined, privateKey: Uint8Array): Uint8Array {
  if (payee === undefined) return new Uint8Array()
  const key = hexBytes(payee)
  if (key === null || publicKeyOf(privateKey) !== payee)
    throw new RangeError('payee must be the signing key')
  return bytesField(TAG.payee, key)
}

function bytesField(tag: number, bytes: Uint8Array): Uint8Array {
  return field(tag, bytesToWords(bytes))
}

function field(tag: number, words: ArrayLike<number>): Uint8Array {
  const whole = new Uint8Array(3 + words.length)
  whole[0] = tag
  whole[1] = words.length >>> 5
  whole[2] = words.length & 31
  whole.set(words, 3)
  return whole
}

/** Big-endian, in `width` words or as few as needed. */
function numberWords(value: number, width = Math.floor(Math.log2(value) / 5) + 1): Uint8Array {
  const words = new Uint8Array(width)
  let rest = value
  for (let i = width - 1; i >= 0; i--) {
    words[i] = rest % 32
    rest = Math.floor(rest / 32)
  }
  return words
}

function requireInteger(name: string, value: number, max = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > max) {
    throw new RangeError(`${name} must be an integer from 1 to ${max}`)
  }
}

function sized(name: string, bytes: Uint8Array | null, length: number): Uint8Array {
  if (bytes?.length !== length) throw new RangeError(`${name} must be ${length} bytes`)
  return bytes
}
