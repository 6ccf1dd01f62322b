import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suspendInbox } from '../../src/catch/store.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { anInbox, aSmallServer, asOperator, get, send } from '../support/catch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type Exchanged, exchange } from '../support/socket.ts'

const DAY = 24 * 60 * 60 * 1000

test('a body may have exactly its limit in bytes and not one more, by length and in chunks', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  const target = `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n`
  const whole = (bytes: number): Promise<Exchanged> =>
    exchange(
      server.url,
      `${target}Content-Length: ${bytes}\r\nConnection: close\r\n\r\n`,
      'x'.repeat(bytes),
    )
  const chunked = (bytes: number): Promise<Exchanged> =>
    exchange(
      server.url,
      `${target}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      `${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`,
    )
  const tooLarge = '{"error":"request too large"}'
  for (const ask of [whole, chunked]) {
    for (const bytes of [61, 1_000, 100_000]) {
      const refused = await ask(bytes)
      assert.deepEqual([refused.status, refused.body], [400, tooLarge], `${bytes}`)
    }
  }
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  assert.equal((await whole(60)).status, 204)
  const second = await anInbox(server)
  const other = `POST /c/${second.publicId} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
  assert.equal(
    (await exchange(server.url, other, `3c\r\n${'x'.repeat(60)}\r\n0\r\n\r\n`)).status,
    204,
  )
})

test('a sender whose body is megabytes too long still reads the refusal', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const body = 'x'.repeat(600_000)
  assert.deepEqual(await send(server, inbox, { method: 'POST', body }), {
    status: 400,
    text: '{"error":"request too large"}',
  })
})

test('a stranger cannot tell an unknown, malformed, suspended, exhausted, expired or destroyed inbox from another', async (t) => {
  const server = await startServer(t)
  const inboxes = await Promise.all(Array.from({ length: 4 }, () => anInbox(server)))
  const [suspended, exhausted, destroyed, expired] = inboxes.map(({ publicId }) => publicId)
  for (const { publicId } of inboxes)
    assert.equal((await get(server, `/c/${publicId}`)).status, 204)
  await asOperator(server, suspendInbox(suspended ?? '', server.now()))
  await Promise.all(Array.from({ length: 100 }, () => get(server, `/c/${exhausted}`)))
  await server.mayfly.catch(inboxes[2] as CatchCapability).destroy()

  const unknown = [
    'catch_0000000000000000000000',
    'catch',
    '',
    '%20',
    '__proto__',
    'x'.repeat(101),
    'x'.repeat(20_000),
  ]
  const answers: unknown[] = []
  for (const id of [...unknown, suspended, exhausted, destroyed]) {
    for (const path of ['', '/sub', '?q']) answers.push(await facelessly(server, `/c/${id}${path}`))
  }
  server.clock.advance(DAY)
  answers.push(
    await facelessly(server, `/c/${expired}`),
    await facelessly(server, `/c/${suspended}`),
  )
  const [first] = answers
  assert.deepEqual(first, {
    status: 401,
    body: '{"error":"catch unavailable"}',
    headers: [
      'x-content-type-options: nosniff',
      'cache-control: no-store',
      'access-control-allow-origin: *',
      'access-control-expose-headers: WWW-Authenticate, Payment-Receipt, Gate-Receipt, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id',
      'www-authenticate: Bearer',
      'content-type: application/json; charset=utf-8',
      'content-length: 29',
      'Connection: close',
    ],
  })
  for (const answer of answers) assert.deepEqual(answer, first)
})

/** All of an answer but the time. */
async function facelessly(server: TestServer, target: string): Promise<unknown> {
  const { status, body, lines } = await get(server, target)
  return { status, body, headers: lines.filter((line) => !/^date:/i.test(line)) }
}
