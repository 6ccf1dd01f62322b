/** Our alerts, as the reference library of Standard Webhooks sees them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { newWebhookSecret, webhookHeaders } from '../../src/protocol/webhook-signing.ts'

const BODY = '{"type":"pulse.late","data":{"name":"Sicherung \u{1f4be}"}}'
const message = () => ({ id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: Date.now(), body: BODY })

test('the reference library accepts what we sign, with characters beyond ASCII too', () => {
  const secret = newWebhookSecret()
  assert.deepEqual(new Webhook(secret).verify(BODY, webhookHeaders(message(), secret)), {
    type: 'pulse.late',
    data: { name: 'Sicherung \u{1f4be}' },
  })
})

test('a signature is good for its own secret, body, id and time only', () => {
  const secret = newWebhookSecret()
  const headers = webhookHeaders(message(), secret)
  const later = String(Number(headers['webhook-timestamp']) + 1)
  for (const [body, changed] of [
    [`${BODY} `, headers],
    [BODY, { ...headers, 'webhook-id': 'msg_other' }],
    [BODY, { ...headers, 'webhook-timestamp': later }],
  ] as const) {
    assert.throws(() => new Webhook(secret).verify(body, changed), WebhookVerificationError)
  }
  const foreign = new Webhook(newWebhookSecret())
  assert.throws(() => foreign.verify(BODY, headers), WebhookVerificationError)
})

test('the vector of the reference libraries comes out', () => {
  const headers = webhookHeaders(
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: 1_614_265_330_999, body: '{"test": 2432232314}' },
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  )
  assert.deepEqual(headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('every secret is 32 random bytes, and a malformed one signs nothing', () => {
  const secrets = Array.from({ length: 20 }, newWebhookSecret)
  for (const secret of secrets) assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(new Set(secrets).size, 20)
  for (const secret of ['', 'whsec_', 'whsec_AAAA', secrets[0]?.slice(6) ?? '']) {
    assert.throws(() => webhookHeaders(message(), secret), /malformed/)
  }
})
