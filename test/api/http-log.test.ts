import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { openOrder, poll, purchase, settlement } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { ask, assertError, errorsLogged } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { hideTable } from '../support/store.ts'
import { aWhisper, read } from '../support/whisper.ts'

const ID = 'catch_0000000000000000000000'

test('our own bug is a 500 with a request id that the log knows, and nothing else has one', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const show = await hideTable(server, 'catch_inbox')
  const bearer = `Authorization: Bearer ${inbox.ownerToken}\r\n`
  const unremembered = `/c/${ID}`
  for (const [line, headers, route] of [
    [`GET /api/catch/${inbox.publicId}`, bearer, '/api/catch/:publicId'],
    [`POST ${unremembered}`, 'Content-Length: 0\r\n', '/c/:publicId'],
  ] as const) {
    const answer = await ask(server.url, line, { headers })
    assertError(answer, '500 internal error', line)
    const requestId = answer.headers.get('x-request-id') ?? ''
    assert.match(requestId, /^[0-9a-f-]{36}$/)
    const [entry] = errorsLogged(server).slice(-1)
    assert.equal(entry?.event, 'http.failed')
    assert.equal(entry?.requestId, requestId)
    assert.equal(entry?.route, route)
  }
  await show()
  for (const line of ['GET /health', 'GET /nowhere', 'PUT /health', `GET /api/catch/${ID}`]) {
    assert.equal((await ask(server.url, line)).headers.get('x-request-id'), null, line)
  }
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
})

test('the log has route patterns, and no token, key, preimage, id or path', async (t) => {
  const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'debug' })
  const { url } = server
  const key = randomUUID()
  const quote = await openOrder(server, { key })
  const settled = settlement(server)
  const preimage = await server.pay(quote.bolt11)
  await settled
  await poll(server, quote.orderId, { 'idempotency-key': 'wrong-key' })
  await poll(server, quote.orderId, { 'sec-purpose': 'prefetch' })
  const { resource } = JSON.parse((await purchase(server, { key })).text)
  const { publicId, ownerToken, ingestToken }: CatchCapability = resource
  await fetch(`${url}/c/${publicId}/secret-path?secret-query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ingestToken}`, 'x-header': 'secret-header' },
    body: 'secret-body',
  })
  const owner = server.mayfly.catch(resource)
  const [event] = (await owner.page({ q: 'secret-search' })).events.concat(
    (await owner.page()).events,
  )
  await owner.deleteEvent(event?.id ?? '')
  await fetch(`${url}/api/catch/${publicId}`, {
    headers: { authorization: 'Bearer secret-bearer' },
  })
  await fetch(`${url}/secret-nowhere/${ownerToken}?${ingestToken}`)
  await fetch(`${url}/secret-nowhere/%zz${ownerToken}`)
  await ask(url, 'NONSENSE /secret-nowhere')
  const whisper = await aWhisper(server, {
    key: 'secret-key',
    body: Buffer.from('secret-content-that-is-long-enough'),
  })
  await read(server, whisper)
  const show = await hideTable(server, 'catch_inbox')
  await fetch(`${url}/api/catch/${publicId}?secret-query`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  })
  await show()
  await owner.destroy()
  await server.stop()

  const log = server.logged.join('')
  const routes = server.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'http.request')
    .map(({ method, route, status }) => `${method} ${route} ${status}`)
  for (const expected of [
    'POST /api/payments/catch 402',
    'POST /simulator/pay 200',
    'GET /api/payments/:orderId 404',
    'GET /api/payments/:orderId 402',
    'POST /api/payments/catch 200',
    'POST /c/:publicId 204',
    'GET /api/catch/:publicId/events 200',
    'DELETE /api/catch/:publicId/events/:eventId 204',
    'GET /api/catch/:publicId 401',
    'GET none 404',
    'POST /api/payments/whisper 402',
    'GET /w/:publicId 200',
    'GET /api/catch/:publicId 500',
    'DELETE /api/catch/:publicId 204',
  ]) {
    assert.ok(routes.includes(expected), expected)
  }
  for (const secret of [
    key,
    'wrong-key',
    preimage,
    quote.bolt11,
    ownerToken,
    ingestToken,
    publicId,
    quote.orderId,
    whisper.readToken,
    whisper.publicId,
    event?.id ?? '',
    'secret-',
  ]) {
    assert.ok(!log.includes(secret), secret)
  }
  // An order is named in the lines about it, so that the operator can follow its money.
  const named = server.logged.filter((line) => line.includes(quote.paymentHash))
  assert.deepEqual(
    named.map((line) => JSON.parse(line).event),
    ['order.quoted', 'order.settled', 'order.delivered'],
  )
})
