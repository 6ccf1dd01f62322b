/** A challenge is for one intent of one project, whatever the name of the service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGateChallenges } from '../../src/gate/challenge.ts'
import type { IntentRow } from '../../src/gate/store.ts'
import type { PaymentCredential } from '../../src/protocol/payment-auth.ts'
import { paymentChallengeIn } from '../support/payer.ts'
import { anIntent } from './rows.ts'

const KEY = new Uint8Array(32).fill(1)
const intent = (changes: Partial<IntentRow> = {}): IntentRow => ({
  ...anIntent('a', 'q'),
  state: 'open',
  verify_count: 0,
  next_verify_at: 0,
  body_sha256: 'ab'.repeat(32),
  request_digest: 'cd'.repeat(32),
  ...changes,
})
const challenges = (url = 'https://gate.example:8443') =>
  createGateChallenges({ keys: [KEY], publicUrl: () => url })

const credentialFor = (of: IntentRow): PaymentCredential => ({
  challenge: paymentChallengeIn(challenges().challenge(of).field),
  payload: { preimage: '00'.repeat(32) },
})

test('a credential is for its own intent, with everything that the challenge binds', () => {
  const { isFor } = challenges()
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

test('a challenge names the host of the service, and is honoured under another', () => {
  const credential = credentialFor(intent())
  assert.equal(credential.challenge.realm, 'gate.example')
  assert.equal(challenges('https://new.example').isFor(intent(), credential), true)
  for (const realm of ['new.example', 'gate.example|', '|']) {
    const elsewhere = { ...credential, challenge: { ...credential.challenge, realm } }
    assert.equal(challenges('https://new.example').isFor(intent(), elsewhere), false)
  }
})
