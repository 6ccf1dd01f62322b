/** Which events `next` and `waitFor` begin with, and what they make of what strangers send. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CatchEvent, eventJson } from '../../src/client/index.ts'
import { anInbox, send } from '../support/catch.ts'
import { startServer } from '../support/server.ts'

const startInbox = async (t: Parameters<typeof startServer>[0]) => {
  const server = await startServer(t)
  const capability = await anInbox(server)
  return {
    inbox: server.mayfly.catch(capability),
    post: (body: string) => send(server, capability, { method: 'POST', body }),
    put: (body: string) => send(server, capability, { method: 'PUT', body }),
  }
}

test('each event is handed out once, those before the first call included', async (t) => {
  const { inbox, post } = await startInbox(t)
  await post('1')
  await post('2')
  assert.deepEqual([(await inbox.next()).body, (await inbox.next()).body], ['1', '2'])
  const third = inbox.next()
  await post('3')
  assert.equal((await third).body, '3')
  await assert.rejects(inbox.next({ timeoutMs: 50 }), { phrase: 'no event in time' })
})

test('two calls at once are handed two events', async (t) => {
  const { inbox, post } = await startInbox(t)
  await post('1')
  await post('2')
  let asked = 0
  const askedBoth = Promise.withResolvers<void>()
  const anyOf = async () => {
    if (++asked === 2) askedBoth.resolve()
    await askedBoth.promise
    return true
  }
  const both = await Promise.all([inbox.waitFor(anyOf), inbox.waitFor(anyOf)])
  assert.deepEqual(both.map(({ body }) => body).sort(), ['1', '2'])
})

test('an event that one call does not want stays for the next one', async (t) => {
  const { inbox, post, put } = await startInbox(t)
  await put('created')
  await post('noise')
  await post('paid')
  const isBody = (text: string) => (event: CatchEvent) => event.body === text
  assert.equal((await inbox.waitFor(isBody('paid'))).sequence, 3)
  assert.equal((await inbox.waitFor(isBody('created'))).sequence, 1)
  assert.equal((await inbox.next({ filter: { method: 'POST' } })).body, 'noise')
  await assert.rejects(inbox.next({ timeoutMs: 50 }), { phrase: 'no event in time' })
  assert.equal((await inbox.next({ after: 0 })).sequence, 1, 'where the caller says')
})

test('an event that was deleted is not waited for', async (t) => {
  const { inbox, post } = await startInbox(t)
  for (const body of ['1', '2', '3']) await post(body)
  const { events } = await inbox.page({ after: 0 })
  await inbox.deleteEvent(events[1]?.id ?? '')
  assert.deepEqual([(await inbox.next()).body, (await inbox.next()).body], ['1', '3'])
  await post('4')
  assert.equal((await inbox.next()).body, '4')
})

test('the JSON of an event is what its text says, and of bytes that are no text there is none', () => {
  assert.deepEqual(eventJson({ body: '{"a":[1]}', bodyEncoding: 'utf8' }), { a: [1] })
  assert.equal(eventJson({ body: 'null', bodyEncoding: 'utf8' }), null)
  for (const [body, bodyEncoding] of [
    ['{"a":', 'utf8'],
    ['', 'utf8'],
    ['MTIz', 'base64'],
    ['1234', 'base64'],
  ] as const) {
    assert.equal(eventJson({ body, bodyEncoding }), undefined)
  }
})
