import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createMayfly, simulatorWallet } from '../../src/client/index.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { startServer } from '../support/server.ts'
import { serve } from '../support/serving.ts'

test('the SDK extends by an invoice that is shown, once for one key, and says why nothing can be extended', async (t) => {
  const server = await startServer(t)
  const held = await server.mayfly.buyCatch({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  const onInvoice = ({ bolt11 }: { bolt11: string }) => server.pay(bolt11)
  const terms = { planId: 'spark', idempotencyKey: crypto.randomUUID(), onInvoice } as const
  const done = await server.mayfly.extend(held, terms)
  assert.ok('expiresAt' in done && done.expiresAt > held.expiresAt)
  // Nothing made of the token is kept, so the key names the purchase although the token was replaced.
  const replaced = { ...held, ownerToken: tokenOf('catch_owner', randomBytes(32)) }
  assert.deepEqual(await server.mayfly.extend(replaced, terms), done)
  await assert.rejects(server.mayfly.extend(held, { planId: 'long', onInvoice }), {
    phrase: 'invalid plan',
    expected: 'spark',
  })
  await server.mayfly.catch(held).destroy()
  await assert.rejects(server.mayfly.extend(held, { planId: 'spark', onInvoice }), {
    phrase: 'not found',
  })
})

test('the SDK resolves to the new capability if the old one ended while its wallet paid', async (t) => {
  const server = await startServer(t)
  const held = await server.mayfly.buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  const { pay } = simulatorWallet({ baseUrl: server.url })
  const wallet = {
    async pay(bolt11: string) {
      await server.mayfly.pulse(held).destroy()
      return pay(bolt11)
    },
  }
  const done = await server.mayfly.extend(held, { planId: 'spark', wallet })
  assert.ok('replacement' in done)
  assert.notEqual(done.replacement.publicId, held.publicId)
  assert.equal((await server.mayfly.pulse(done.replacement).status()).state, 'waiting')
})

test('an answer in place of a new end is believed by nobody: it could steer a terminal', async (t) => {
  let said: unknown
  const url = await serve(t, (_, response) => void response.end(JSON.stringify(said)))
  const mayfly = createMayfly({ baseUrl: url })
  for (said of [
    { extended: true, expiresAt: '\u001b]0;title\u0007' },
    { extended: true, expiresAt: 7 },
    { extended: true },
    { resource: { extended: true } },
    { resource: null },
    { resource: 'sold' },
  ]) {
    const recovered = mayfly.recover({ bolt11: 'lnbcrt1', preimage: 'ab'.repeat(32) })
    await assert.rejects(recovered, { phrase: 'unexpected answer' }, JSON.stringify(said))
  }
})
