/**
 * Keys derived from MAYFLY_SECRET. Each use has an HKDF label of its own, so that no key serves two
 * purposes; each look-up tries every configured secret, the current one first.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { hkdfSha256, hmacSha256Latin1 } from '../protocol/hmac.ts'

export type Secrets = {
  /**
   * The key of a use under each secret, the current one first. The room that uses the key names the
   * use, such as `order id`. A name is never changed or used for a second purpose.
   */
  keys(use: string): [Uint8Array, ...Uint8Array[]]
  /** The keys of `delivery seed` as key objects: AES takes five times as long with raw bytes. */
  seedKeys: [KeyObject, ...KeyObject[]]
}

/** @param secrets 32 bytes each, the current one first. */
export function createSecrets(secrets: [Uint8Array, ...Uint8Array[]]): Secrets {
  const derived = new Map<string, [Uint8Array, ...Uint8Array[]]>()
  const derive = (secret: Uint8Array, use: string): Uint8Array =>
    hkdfSha256(secret, `mayfly/${use}`)

  function keys(use: string): [Uint8Array, ...Uint8Array[]] {
    const known = derived.get(use)
    if (known) return known
    const [current, ...older] = secrets
    const made: [Uint8Array, ...Uint8Array[]] = [
      derive(current, use),
      ...older.map((secret) => derive(secret, use)),
    ]
    derived.set(use, made)
    return made
  }

  const [current, ...older] = keys('delivery seed')
  return {
    keys,
    seedKeys: [createSecretKey(current), ...older.map((key) => createSecretKey(key))],
  }
}

/** HMAC-SHA-256 over parts, each with its length, so that no two lists of parts share an input. */
export function keyedHash(key: Uint8Array, ...parts: string[]): Buffer {
  let size = 0
  for (const part of parts) size += 4 + Buffer.byteLength(part)
  const message = Buffer.allocUnsafe(size)
  let at = 0
  for (const part of parts) {
    const length = message.write(part, at + 4)
    message.writeUInt32BE(length, at)
    at += 4 + length
  }
  // A purchase computes several of these, and the HMAC of node:crypto takes several times as long.
  return Buffer.from(hmacSha256Latin1(key, message), 'latin1')
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** AES-256-GCM as `nonce ‖ ciphertext ‖ tag`; `context` must be given again to open it. */
export function seal(key: Uint8Array | KeyObject, plain: Uint8Array, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context, 'utf8'))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/**
 * The plain bytes, and whether the current key sealed them. Null if none of the keys opens them, or if the
 * context is not the one used to seal.
 * @param keys the current one first.
 */
export function unseal(
  keys: readonly (Uint8Array | KeyObject)[],
  sealed: Uint8Array,
  context: string,
): { plain: Buffer; isCurrent: boolean } | null {
  for (const [i, key] of keys.entries()) {
    const plain = unsealWith(key, sealed, context)
    if (plain) return { plain, isCurrent: i === 0 }
  }
  return null
}

function unsealWith(
  key: Uint8Array | KeyObject,
  sealed: Uint8Array,
  context: string,
): Buffer | null {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return null
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(context, 'utf8'))
    .setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
  try {
    return Buffer.concat([
      decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)),
      decipher.final(),
    ])
  } catch {
    return null
  }
}

/** A name for each configured secret that reveals nothing about it, the current one first. */
export function fingerprints(secrets: Secrets): [string, ...string[]] {
  const [current, ...older] = secrets.keys('fingerprint')
  const name = (key: Uint8Array): string => Buffer.from(key.subarray(0, 8)).toString('hex')
  return [name(current), ...older.map(name)]
}
