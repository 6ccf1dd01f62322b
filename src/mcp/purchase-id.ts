/**
 * The names of purchases. The service makes them, so that nobody can buy under a name that others guess: 128
 * random bits, and a tag that only this service can make. Nothing is stored, and any instance knows its own.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { base62 } from '../lib/base62.ts'
import { utf8 } from '../lib/bytes.ts'
import { hmacSha256 } from '../protocol/hmac.ts'

const RANDOM_DIGITS = 22
/** 64 bits: guessing one costs as many requests. */
const TAG_BYTES = 8
const PURCHASE_ID = /^[0-9A-Za-z]{33}$/

export type PurchaseIds = {
  make(): string
  /** The Idempotency-Key of a purchase, or null if this service did not name it. */
  keyOf(purchaseId: string): string | null
}

/** @param keys the current one first. */
export function createPurchaseIds(keys: readonly Uint8Array[]): PurchaseIds {
  const tagUnder = (key: Uint8Array, random: string): string =>
    base62(hmacSha256(key, utf8(random)).subarray(0, TAG_BYTES))

  return {
    make() {
      const random = base62(randomBytes(16))
      return random + tagUnder(keys[0] as Uint8Array, random)
    },
    keyOf(purchaseId) {
      if (!PURCHASE_ID.test(purchaseId)) return null
      const random = purchaseId.slice(0, RANDOM_DIGITS)
      const tag = Buffer.from(purchaseId.slice(RANDOM_DIGITS))
      const isOurs = keys.some((key) => timingSafeEqual(Buffer.from(tagUnder(key, random)), tag))
      return isOurs ? strongKey(purchaseId) : null
    },
  }
}

/** Random digits can look like a word by chance. A UUIDv4 beside them always counts as random. */
function strongKey(purchaseId: string): string {
  const digits = hash('sha256', purchaseId, 'hex')
  const uuid = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(12, 15)}`,
    `8${digits.slice(15, 18)}`,
    digits.slice(18, 30),
  ].join('-')
  return `${purchaseId}.${uuid}`
}
