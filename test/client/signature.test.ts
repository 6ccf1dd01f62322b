import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { guessProvider, verifySignature } from '../../src/client/index.ts'
import { anInbox, send } from '../support/catch.ts'
import { shareServer } from '../support/shared-server.ts'

const shared = shareServer()

test('the signature of a body is checked byte for byte as it was sent, text or not', async () => {
  const server = await shared()
  const inbox = await anInbox(server)
  const client = server.mayfly.catch(inbox)
  const secret = randomBytes(16).toString('hex')
  for (const body of [
    randomBytes(4096),
    Buffer.from('\ufeff{"name":"Zoë"}\r\n'),
    Buffer.alloc(0),
  ]) {
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    await send(server, inbox, {
      method: 'POST',
      headers: { 'x-hub-signature-256': `sha256=${signature}` },
      body,
    })
    const event = await client.next({ after: 0, filter: { q: signature } })
    assert.equal(guessProvider(event), 'github')
    assert.deepEqual(await verifySignature(event, { provider: 'github', secret }), {
      provider: 'github',
      valid: true,
      sentence: 'The signature is valid: it fits the body and this secret.',
    })
    assert.deepEqual(await verifySignature(event, { provider: 'github', secret: 'other' }), {
      provider: 'github',
      valid: false,
      rule: 'signature mismatch',
      header: 'X-Hub-Signature-256',
      sentence:
        'The signature does not match: the secret is another one, or the body changed after it was signed.',
    })
  }
})

test('a timestamp is compared with the time at which the request came, however much later it is checked', async () => {
  const server = await shared()
  const inbox = await anInbox(server)
  const client = server.mayfly.catch(inbox)
  const secret = 'whsec_of_an_endpoint'
  const sent = async (age: number) => {
    const at = Math.floor(server.now() / 1000) - age
    const v1 = createHmac('sha256', secret).update(`${at}.{}`).digest('hex')
    await send(server, inbox, {
      method: 'POST',
      headers: { 'stripe-signature': `t=${at},v1=${v1}` },
      body: '{}',
    })
    return client.next({ after: 0, filter: { q: v1 } })
  }
  const [fresh, stale] = [await sent(0), await sent(4000)]
  const check = { provider: 'stripe', secret } as const
  assert.equal((await verifySignature(fresh, check)).valid, true)
  const verdict = await verifySignature(stale, check)
  assert.deepEqual(verdict, {
    provider: 'stripe',
    valid: false,
    rule: 'timestamp too old',
    header: 'Stripe-Signature',
    sentence:
      'The signature matches, but its timestamp is 66 min older than the request. 5 min is allowed.',
  })
  assert.equal((await verifySignature(stale, { ...check, toleranceSeconds: 4000 })).valid, true)
})
