/**
 * Answers WebCrypto at once while a world is entered. Node computes it in threads, whose answers come when they
 * come: the order of a run would be that of the machine.
 */
import { createHash, createPublicKey, KeyObject, sign, verify } from 'node:crypto'
import { isSimulating } from './world.ts'

type Subtle = typeof crypto.subtle
type Bytes = ArrayBuffer | ArrayBufferView

const HASHES: Record<string, string> = { 'SHA-256': 'sha256', 'SHA-512': 'sha512' }

export function replaceWebCrypto(): void {
  const { subtle } = crypto
  const real = {
    digest: subtle.digest.bind(subtle),
    sign: subtle.sign.bind(subtle),
    verify: subtle.verify.bind(subtle),
    importKey: subtle.importKey.bind(subtle),
  }
  /** The Ed25519 keys that WebCrypto was given, in the form that answers at once. */
  const keys = new WeakMap<object, KeyObject>()

  const digest: Subtle['digest'] = async (algorithm, data) => {
    const hash = HASHES[nameOf(algorithm)]
    if (!isSimulating() || hash === undefined) return real.digest(algorithm, data)
    return copied(createHash(hash).update(bytesOf(data)).digest())
  }
  const signAtOnce: Subtle['sign'] = async (algorithm, key, data) => {
    const known = keys.get(key)
    if (!isSimulating() || !known) return real.sign(algorithm, key, data)
    return copied(sign(null, bytesOf(data), known))
  }
  // biome-ignore lint/complexity/useMaxParams: WebCrypto says what it is called with.
  const verifyAtOnce: Subtle['verify'] = async (algorithm, key, signature, data) => {
    const known = keys.get(key)
    if (!isSimulating() || !known) return real.verify(algorithm, key, signature, data)
    return verify(null, bytesOf(data), known, bytesOf(signature))
  }
  const importKey = async (...given: [string, Bytes, unknown, ...unknown[]]) => {
    const key = await real.importKey(...(given as unknown as Parameters<Subtle['importKey']>))
    const [format, data, algorithm] = given
    if (format === 'raw' && nameOf(algorithm) === 'Ed25519') {
      const x = Buffer.from(bytesOf(data)).toString('base64url')
      const jwk = { kty: 'OKP', crv: 'Ed25519', x }
      keys.set(key, createPublicKey({ key: jwk, format: 'jwk' }))
    }
    return key
  }
  Object.assign(subtle, { digest, sign: signAtOnce, verify: verifyAtOnce, importKey })

  const { toCryptoKey } = KeyObject.prototype
  KeyObject.prototype.toCryptoKey = function (...given) {
    const key = toCryptoKey.apply(this, given)
    if (this.asymmetricKeyType === 'ed25519') keys.set(key, this)
    return key
  }
}

const nameOf = (algorithm: unknown): string =>
  typeof algorithm === 'string' ? algorithm : (algorithm as { name: string }).name

const bytesOf = (data: Bytes): Uint8Array =>
  ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data)

const copied = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer
