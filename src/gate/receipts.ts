/**
 * The keys that sign receipts, one for each configured secret. The JWKS lists all of them, so that
 * receipts stay valid through a rotation.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { CompactSign, calculateJwkThumbprint } from 'jose'
import { concat, utf8 } from '../lib/bytes.ts'
import { GATE_RECEIPT_TYPE, type GateReceipt } from '../protocol/gate-receipt.ts'
import type { GateJwks, VerificationKind } from './schema.ts'
import { type IntentRow, type NewReceipt, receiptIdOf } from './store.ts'

/** How long a receipt admits its request. */
const ADMISSION_SECONDS = 300

/** @param seeds 32 bytes each, the current one first. */
export async function createReceipts(seeds: readonly [Uint8Array, ...Uint8Array[]]) {
  const [seed, ...older] = seeds
  const current = await keyOf(seed)
  const previous = await Promise.all(older.map(keyOf))
  return {
    /** The compact JWS. */
    sign: (claims: GateReceipt): Promise<string> =>
      new CompactSign(utf8(JSON.stringify(claims)))
        .setProtectedHeader({ alg: 'EdDSA', kid: current.jwk.kid, typ: GATE_RECEIPT_TYPE })
        .sign(current.privateKey),
    jwks: { keys: [current, ...previous].map(({ jwk }) => jwk) } satisfies GateJwks,
  }
}

export type Receipts = Awaited<ReturnType<typeof createReceipts>>

/** A fresh signed receipt of an intent. `giveBacks` counts the earlier ones. */
export async function newReceipt(
  receipts: Receipts,
  intent: IntentRow,
  facts: { issuer: string; by: VerificationKind; now: number; giveBacks?: number },
): Promise<NewReceipt> {
  const { issuer, by, now, giveBacks = 0 } = facts
  const issuedAt = Math.floor(now / 1000)
  const expiresAt = issuedAt + ADMISSION_SECONDS
  const receiptId = receiptIdOf(intent.intent_id, giveBacks)
  return {
    receipt_id: receiptId,
    intent_id: intent.intent_id,
    project_id: intent.project_id,
    verified_by: by,
    authorized_at: now,
    expires_at: expiresAt * 1000,
    receipt: await receipts.sign({
      iss: issuer,
      aud: intent.project_id,
      jti: receiptId,
      iat: issuedAt,
      exp: expiresAt,
      intent: intent.intent_id,
      route: intent.route_id,
      htm: intent.method,
      htp: intent.path,
      req: intent.request_digest,
      sat: intent.amount_sats,
      ph: intent.payment_hash,
      net: intent.network,
      by,
      ...(giveBacks > 0 ? { gb: giveBacks } : {}),
    }),
  }
}

/** The DER prefix of a 32-byte Ed25519 key in PKCS #8 (RFC 8410 §7). */
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
