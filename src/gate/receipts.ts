/**
 * The keys that sign receipts, one for each configured secret, and the JWKS that shows them all:
 * through a rotation the previous one stays there.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { CompactSign, calculateJwkThumbprint } from 'jose'
import { concat, utf8 } from '../lib/bytes.ts'
import { GATE_RECEIPT_TYPE, type GateReceipt } from '../protocol/gate-receipt.ts'
import type { GateJwks } from './schema.ts'

/** How long a receipt lets its request in. */
export const ADMISSION_SECONDS = 300

export type Receipts = {
  /** The compact JWS. */
  sign(claims: GateReceipt): Promise<string>
  jwks: GateJwks
}

/** @param seeds 32 bytes each, the current one first. */
export async function createReceipts(
  seeds: readonly [Uint8Array, ...Uint8Array[]],
): Promise<Receipts> {
  const [seed, ...older] = seeds
  const current = await keyOf(seed)
  const previous = await Promise.all(older.map(keyOf))
  return {
    sign: (claims) =>
      new CompactSign(utf8(JSON.stringify(claims)))
        .setProtectedHeader({ alg: 'EdDSA', kid: current.jwk.kid, typ: GATE_RECEIPT_TYPE })
        .sign(current.privateKey),
    jwks: { keys: [current, ...previous].map(({ jwk }) => jwk) },
  }
}

/** RFC 8410 §7: what stands before the 32 bytes of an Ed25519 key in PKCS #8. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

async function keyOf(
  seed: Uint8Array,
): Promise<{ privateKey: KeyObject; jwk: GateJwks['keys'][number] }> {
  const privateKey = createPrivateKey({
    key: Buffer.from(concat(PKCS8_PREFIX, seed)),
    format: 'der',
    type: 'pkcs8',
  })
  const { x = '' } = privateKey.export({ format: 'jwk' })
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x } as const
  const kid = await calculateJwkThumbprint(publicKey)
  return { privateKey, jwk: { ...publicKey, kid, alg: 'EdDSA', use: 'sig' } }
}
