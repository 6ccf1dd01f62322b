/**
 * The names of purchases. The service makes them, so that nobody can buy under a name that others guess: 128
 * random bits, and a tag that only this service can make. Nothing is stored, and any instance knows its own.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { base62 } from '../../lib/base62.ts'
import { utf8 } from '../../lib/bytes.ts'
import { hmacSha256 } from '../../protocol/hmac.ts'

const RANDOM_DIGITS = 22
/** 64 bits: guessing one costs as many requests. */
const TAG_BYTES = 8
const PURCHASE_ID = /^[0-9A-Za-z]{33}$/

export type PurchaseIds = ReturnType<typeof createPurchaseIds>

/** @param keys the current one first. */
export function createPurchaseIds(keys: readonly Uint8Array[]) {
  const tagUnder = (key: Uint8Array, random: string): string =>
    base62(hmacSha256(key, utf8(random)).subarray(0, TAG_BYTES))

  return {
    make(): string {
      const random = base62(randomBytes(16))
      return random + tagUnder(keys[0] as Uint8Array, random)
    },
    /** Whether this service made the name. It is the Idempotency-Key of its purchase. */
    isOwn(purchaseId: string): boolean {
      if (!PURCHASE_ID.test(purchaseId)) return false
      const random = purchaseId.slice(0, RANDOM_DIGITS)
      const tag = Buffer.from(purchaseId.slice(RANDOM_DIGITS))
      return keys.some((key) => timingSafeEqual(Buffer.from(tagUnder(key, random)), tag))
    },
  }
}
