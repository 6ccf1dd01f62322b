/** A challenge is for one intent of one project, under each secret that is configured. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGateChallenges } from '../../src/gate/challenge.ts'
import type { IntentRow } from '../../src/gate/store.ts'
import type { PaymentCredential } from '../../src/protocol/payment-auth.ts'
import { anIntent } from '../support/gate-store.ts'
import { paymentChallenges } from '../support/payer.ts'

const KEYS = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte))
const [ONE, TWO, THREE] = KEYS as [Uint8Array, Uint8Array, Uint8Array]
const intent = (changes: Partial<IntentRow> = {}): IntentRow => ({
  ...anIntent('a', 'q'),
  state: 'open',
  verify_count: 0,
  next_verify_at: 0,
  body_sha256: 'ab'.repeat(32),
  request_digest: 'cd'.repeat(32),
  ...changes,
})
const challenges = (keys: [Uint8Array, ...Uint8Array[]], url = 'https://gate.example:8443') =>
  createGateChallenges({ keys, publicUrl: () => url })

function credentialFor(of: IntentRow, by = challenges([ONE])): PaymentCredential {
  const [challenge] = paymentChallenges([by.challenge(of).field])
  assert.ok(challenge)
  return { challenge, payload: { preimage: '00'.repeat(32) } }
}

test('a credential is for its own intent, with everything that the challenge binds', () => {
  const { isFor } = challenges([ONE])
  const credential = credentialFor(intent())
  assert.equal(isFor(intent(), credential), true)
  const changes: Partial<IntentRow>[] = [
    ...[{ project_id: 'p' }, { request_digest: 'ce'.repeat(32) }, { intent_id: 'b' }],
    ...[{ body_sha256: 'ac'.repeat(32) }, { amount_sats: 51 }, { bolt11: 'another' }],
    ...[{ payment_hash: 'another' }, { network: 'mainnet' as const }],
    { quote_expires_at: intent().quote_expires_at + 1000 },
  ]
  for (const change of changes) {
    assert.equal(isFor(intent(change), credential), false, JSON.stringify(change))
  }
})

test('a challenge is made with the current secret, and a credential is for any that is configured', () => {
  assert.deepEqual(
    credentialFor(intent(), challenges([ONE, TWO])),
    credentialFor(intent(), challenges([ONE])),
  )
  const credential = credentialFor(intent(), challenges([TWO]))
  assert.equal(challenges([ONE, TWO]).isFor(intent(), credential), true)
  assert.equal(challenges([ONE, THREE]).isFor(intent(), credential), false)
})

test('a challenge names the host of the service, and is honoured under another', () => {
  const credential = credentialFor(intent())
  assert.equal(credential.challenge.realm, 'gate.example')
  assert.equal(challenges([ONE], 'https://new.example').isFor(intent(), credential), true)
  for (const realm of ['new.example', 'gate.example|', '|']) {
    const elsewhere = { ...credential, challenge: { ...credential.challenge, realm } }
    assert.equal(challenges([ONE], 'https://new.example').isFor(intent(), elsewhere), false)
  }
})
