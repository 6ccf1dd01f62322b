import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

test('a stranger buys an inbox, sends it a webhook and reads it back', async (t) => {
  const { url, mayfly, pay } = await startServer(t)
  const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice: ({ bolt11 }) => pay(bolt11) })
  const sent = await fetch(`${url}/c/${inbox.publicId}/hooks/1?x=y`, {
    method: 'POST',
    body: 'hello',
  })
  assert.equal(sent.status, 204)
  const [event] = await Array.fromAsync(mayfly.catch(inbox).events())
  assert.equal(event?.body, 'hello')
  assert.equal(event?.path, '/hooks/1')
  assert.equal(event?.query, 'x=y')
})
