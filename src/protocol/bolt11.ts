/**
 * Lightning invoices (BOLT 11), read strictly: a text that two parsers could understand differently, such
 * as one with two payment hashes, is refused. The signature is not verified here. A key recovered from it
 * proves nothing to a caller who does not know the payee; such a caller compares amount and payment hash.
 * A caller who knows the payee uses `bolt11-sign.ts`.
 */
import { concat, hex, utf8, utf8Text } from '../lib/bytes.ts'
import { decodeBech32, packWords, wordsToBytes } from './bech32.ts'

/** The capacity of the largest QR code: a longer invoice could not be shown. */
export const MAX_INVOICE_CHARS = 7089

// 35 bits, like the timestamp: enough for a millennium, and the sum of both still fits a date.
const MAX_NUMBER_WORDS = 7

/** 35 bits. */
export const TIMESTAMP_WORDS = 7

// 64 bytes and the recovery id.
const SIGNATURE_WORDS = 104

/** Seconds, if an invoice has no `x` field. */
export const DEFAULT_EXPIRY_SECONDS = 3600

const DEFAULT_MIN_FINAL_CLTV = 18

/** The fields that are read. Each may occur only once. BOLT 11 calls them p, 9, x, d, s, n, h and c. */
export const TAG = {
  paymentHash: 1,
  features: 5,
  expiry: 6,
  description: 13,
  paymentSecret: 16,
  payee: 19,
  descriptionHash: 23,
  minFinalCltv: 24,
} as const

const KNOWN_TAGS: ReadonlySet<number> = new Set(Object.values(TAG))

// BOLT 9: onion format, payment secret, multi-part payment, route blinding, payment metadata.
const KNOWN_FEATURES: ReadonlySet<number> = new Set([8, 14, 16, 24, 48])

const NETWORKS = [
  ['mainnet', 'bc'],
  ['testnet', 'tb'],
  ['signet', 'tbs'],
  ['regtest', 'bcrt'],
  ['simnet', 'sb'],
] as const

// In bitcoin and its fractions; a picobitcoin is a tenth of a millisatoshi.
const PREFIX = /^ln(bcrt|bc|tbs|tb|sb)(?:([1-9]\d*)([munp]?))?$/
const PICOBITCOIN: Record<string, bigint> = {
  '': 1_000_000_000_000n,
  m: 1_000_000_000n,
  u: 1_000_000n,
  n: 1_000n,
  p: 1n,
}

const RECOVERY_IDS = [0, 1, 2, 3] as const

export type InvoiceNetwork = (typeof NETWORKS)[number][0]

export type Invoice = {
  /** The text, in lower case. */
  bolt11: string
  network: InvoiceNetwork
  /** Null if the payer chooses the amount. */
  amountMsat: number | null
  /** Unix seconds. */
  timestamp: number
  expirySeconds: number
  /** Unix milliseconds. */
  expiresAt: number
  /** Hex. */
  paymentHash: string
  /** Hex. */
  paymentSecret: string
  /** Null if there is a description hash instead. */
  description: string | null
  /** Hex. Null if there is a description instead. */
  descriptionHash: string | null
  /** Hex of the public key in the `n` field. The signature has not been checked against it yet. */
  payee: string | null
  /** The numbers of all feature bits that are set, in order. */
  features: number[]
  minFinalCltv: number
  /** r and s. */
  signature: Uint8Array<ArrayBuffer>
  recoveryId: (typeof RECOVERY_IDS)[number]
  /** The bytes whose SHA-256 the payee signed. */
  signedData: Uint8Array<ArrayBuffer>
}

/** The text is not a usable invoice. The message is stable and quotes nothing of it. */
export class InvalidInvoice extends Error {
  override name = 'InvalidInvoice'
}

/** The parsed invoice, or null if the text is no invoice. */
export function readableInvoice(bolt11: string): Invoice | null {
  try {
    return decodeInvoice(bolt11)
  } catch (error) {
    if (error instanceof InvalidInvoice) return null
    throw error
  }
}

/** The invoice in a text that a person has copied: QR codes are upper case, and links begin with `lightning:`. */
export const copiedInvoice = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/^lightning:/, '')

/**
 * Reads an invoice (BOLT 11). The signature is taken apart but not checked.
 * @throws InvalidInvoice
 */
export function decodeInvoice(text: string): Invoice {
  if (text.length > MAX_INVOICE_CHARS) throw new InvalidInvoice('too long')
  const parts = decodeBech32(text)
  if (parts === null) throw new InvalidInvoice('not bech32, or its checksum is wrong')
  const { prefix, words } = parts
  const { network, amountMsat } = readPrefix(prefix)

  const signedWords = words.length - SIGNATURE_WORDS
  if (signedWords < TIMESTAMP_WORDS) throw new InvalidInvoice('too short')
  const timestamp = number(words.subarray(0, TIMESTAMP_WORDS))
  const fields = readFields(words.subarray(TIMESTAMP_WORDS, signedWords))
  const expirySeconds = positive(fields.get(TAG.expiry)) ?? DEFAULT_EXPIRY_SECONDS

  return {
    bolt11: text.toLowerCase(),
    network,
    amountMsat,
    timestamp,
    expirySeconds,
    expiresAt: (timestamp + expirySeconds) * 1000,
    paymentHash: required(bytesField(fields.get(TAG.paymentHash), 32), 'no payment hash'),
    paymentSecret: required(bytesField(fields.get(TAG.paymentSecret), 32), 'no payment secret'),
    ...readDescription(fields),
    payee: bytesField(fields.get(TAG.payee), 33),
    features: readFeatures(fields.get(TAG.features)),
    minFinalCltv: positive(fields.get(TAG.minFinalCltv)) ?? DEFAULT_MIN_FINAL_CLTV,
    ...readSignature(words.subarray(signedWords)),
    signedData: signedData(prefix, words.subarray(0, signedWords)),
  }
}

/** The human-readable part: network, and the amount in its shortest spelling (BOLT 11). */
export function invoicePrefix(network: InvoiceNetwork, amountMsat: number | null): string {
  const currency = NETWORKS.find(([name]) => name === network)?.[1]
  return `ln${currency}${amountMsat === null ? '' : shortest(amountMsat)}`
}

/** The signed bytes: the prefix, then all words before the signature, padded to whole bytes. */
export function signedData(prefix: string, words: Uint8Array): Uint8Array<ArrayBuffer> {
  return concat(utf8(prefix), packWords(words))
}

function shortest(amountMsat: number): string {
  if (amountMsat % 100_000_000_000 === 0) return `${amountMsat / 100_000_000_000}`
  if (amountMsat % 100_000_000 === 0) return `${amountMsat / 100_000_000}m`
  if (amountMsat % 100_000 === 0) return `${amountMsat / 100_000}u`
  if (amountMsat % 100 === 0) return `${amountMsat / 100}n`
  return `${amountMsat}0p`
}

function readPrefix(prefix: string): { network: InvoiceNetwork; amountMsat: number | null } {
  const [, currency, digits, multiplier = ''] = PREFIX.exec(prefix) ?? []
  const network = NETWORKS.find(([, code]) => code === currency)?.[0]
  if (network === undefined) throw new InvalidInvoice('not the prefix of a Lightning invoice')
  if (digits === undefined) return { network, amountMsat: null }

  const picobitcoin = BigInt(digits) * (PICOBITCOIN[multiplier] ?? 0n)
  if (picobitcoin % 10n !== 0n) throw new InvalidInvoice('amount is not in whole millisatoshis')
  const amountMsat = Number(picobitcoin / 10n)
  // A safe integer goes up to 90 000 bitcoin.
  if (!Number.isSafeInteger(amountMsat)) throw new InvalidInvoice('amount is too large')
  return { network, amountMsat }
}

function readFields(words: Uint8Array): Map<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>()
  for (let at = 0; at < words.length; ) {
    const [tag, high, low] = words.subarray(at, at + 3)
    if (tag === undefined || high === undefined || low === undefined) {
      throw new InvalidInvoice('a field is cut short')
    }
    const start = at + 3
    at = start + high * 32 + low
    if (at > words.length) throw new InvalidInvoice('a field is cut short')
    if (!KNOWN_TAGS.has(tag)) continue
    // Given two payment hashes, some wallets use the first and some the last.
    if (fields.has(tag)) throw new InvalidInvoice('a field is there twice')
    fields.set(tag, words.subarray(start, at))
  }
  return fields
}

function readDescription(
  fields: Map<number, Uint8Array>,
): Pick<Invoice, 'description' | 'descriptionHash'> {
  const description = fields.get(TAG.description)
  const descriptionHash = bytesField(fields.get(TAG.descriptionHash), 32)
  if ((description === undefined) === (descriptionHash === null)) {
    throw new InvalidInvoice('not exactly one of description and description hash')
  }
  return { description: textField(description), descriptionHash }
}

function readFeatures(words: Uint8Array | undefined): number[] {
  const features: number[] = []
  if (words === undefined) return features
  requireMinimal(words)
  for (let bit = 0; bit < words.length * 5; bit++) {
    const word = words[words.length - 1 - Math.floor(bit / 5)] ?? 0
    if ((word >>> (bit % 5)) & 1) features.push(bit)
  }
  // BOLT 11: an odd bit may be ignored, an even one must be understood.
  if (features.some((bit) => bit % 2 === 0 && !KNOWN_FEATURES.has(bit))) {
    throw new InvalidInvoice('a required feature is unknown')
  }
  return features
}

function readSignature(words: Uint8Array): Pick<Invoice, 'signature' | 'recoveryId'> {
  const bytes = packWords(words)
  const recoveryId = RECOVERY_IDS[bytes[64] ?? RECOVERY_IDS.length]
  if (recoveryId === undefined) throw new InvalidInvoice('recovery id is not 0 to 3')
  return { signature: bytes.slice(0, 64), recoveryId }
}

function required(value: string | null, message: string): string {
  if (value === null) throw new InvalidInvoice(message)
  return value
}

function bytesField(words: Uint8Array | undefined, length: number): string | null {
  if (words === undefined) return null
  const bytes = wordsToBytes(words)
  if (bytes?.length !== length) throw new InvalidInvoice('a field has the wrong length')
  return hex(bytes)
}

function textField(words: Uint8Array | undefined): string | null {
  if (words === undefined) return null
  const bytes = wordsToBytes(words)
  const text = bytes && utf8Text(bytes)
  if (text === null) throw new InvalidInvoice('description is not UTF-8')
  return text
}

function positive(words: Uint8Array | undefined): number | null {
  if (words === undefined) return null
  requireMinimal(words)
  if (words.length > MAX_NUMBER_WORDS) throw new InvalidInvoice('a number is too large')
  return number(words)
}

// BOLT 11: the minimum data_length. Zero is useless in all fields that are read this way.
function requireMinimal(words: Uint8Array): void {
  if (!words[0]) throw new InvalidInvoice('a number is not in its shortest form')
}

function number(words: Uint8Array): number {
  let value = 0
  for (const word of words) value = value * 32 + word
  return value
}
