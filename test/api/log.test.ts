/** What the log says of requests and of orders, and what it never says. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import {
  type Answer,
  type Ask,
  openOrder,
  PURCHASE,
  poll,
  purchase,
  quoteOf,
  settlement,
} from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { ask, assertError, errorsLogged } from '../support/http.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { hideTable, query } from '../support/store.ts'
import {
  HOUR,
  L402,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
} from '../support/wallet-flow.ts'
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
  const routes = logged(server)
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

/** A purchase of each product. */
const PRODUCTS: Record<string, () => Ask> = {
  catch: () => ({ target: PURCHASE }),
  pulse: () => ({ target: '/api/payments/pulse' }),
  whisper: () => ({
    target: '/api/payments/whisper',
    body: randomBytes(32).toString('base64'),
    headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
  }),
}

test('whoever reads the log cannot collect an order: no line has its id, key, preimage or credential, in any flow, of any product', async (t) => {
  const server = await startShop(t, { MAYFLY_LOG_LEVEL: 'trace' })
  const answers: Answer[] = []
  const preimages: string[] = []
  const credentials: string[] = []
  const keys: string[] = []
  const aKey = (): string => keys[keys.push(randomUUID()) - 1] ?? ''
  for (const product of Object.values(PRODUCTS)) {
    // Paid by each flow, and repeated.
    const native = { ...product(), key: aKey() }
    const quote = quoteOf(await purchase(server, native))
    await poll(server, quote.orderId)
    await server.pay(quote.bolt11)
    await poll(server, quote.orderId)
    assert.equal((await purchase(server, native)).status, 200)
    for (const flow of [PAYMENT, L402]) {
      const paid = await paidOrderVia(server, flow, { ...product(), key: aKey() })
      // Proven by its credential before anybody was paid, and wrong once.
      const unpaid = await openOrderVia(server, flow, { ...product(), key: aKey() })
      const { ask, authorization } = paid
      for (const { preimage, authorization } of [paid, unpaid]) {
        const [, token = ''] = authorization.split(' ')
        preimages.push(preimage)
        credentials.push(token, token.split(':')[0] ?? '')
      }
      const others: Partial<Ask>[] = [
        ...[{ body: '{}' }, { method: 'GET' }, { target: `${ask.target}?x` }],
        { authorization: `${authorization}!` },
        { authorization: [authorization, `${authorization}0`] },
        { authorization: flow.credential(unpaid.challenge, paid.preimage) },
      ]
      for (const other of others) answers.push(await purchase(server, { ...ask, ...other }))
      const show = await hideTable(server, 'purchase_order')
      answers.push(await purchase(server, ask))
      await show()
      const once = await purchase(server, ask)
      assert.equal(once.status, 200)
      const wrong = await purchase(server, { ...unpaid.ask, body: 'another body' })
      const proven = await purchase(server, unpaid.ask)
      assert.equal(proven.status, 200)
      answers.push(once, wrong, proven)
    }
    // Lost by the node, refused by the product, and never paid.
    const lost = quoteOf(await purchase(server, { ...product(), key: aKey() }))
    await query(server, 'delete from simulator_invoice where payment_hash = $1', lost.paymentHash)
    await poll(server, lost.orderId)
    quoteOf(await purchase(server, { ...product(), key: aKey() }))
  }
  const owed = quoteOf(await purchase(server, { ...PRODUCTS.whisper?.(), key: aKey() }))
  await query(server, 'delete from whisper_reservation where order_id = $1', owed.orderId)
  await server.pay(owed.bolt11)
  await poll(server, owed.orderId)
  server.clock.advance(HOUR)
  const rows = await query(server, 'select order_id, payment_hash, state from purchase_order')
  for (const { order_id: orderId } of rows) await poll(server, String(orderId))
  await server.restart()
  await server.stop()

  assert.deepEqual(
    [...new Set(logged(server).map(({ event }) => String(event)))]
      .filter((event) => event.startsWith('order.'))
      .sort(),
    [
      ...['order.dead', 'order.delivered', 'order.invoice_unknown', 'order.paid_unfulfilled'],
      ...['order.quoted', 'order.settled'],
    ],
  )
  const log = server.logged.join('')
  assert.equal(rows.length, keys.length)
  for (const { order_id: orderId } of rows) assert.ok(!log.includes(String(orderId)))
  assert.doesNotMatch(log, /order_[0-9A-Za-z]{22}/)
  for (const secret of [...keys, ...preimages, ...credentials]) assert.ok(!log.includes(secret))
  for (const { whole, status, lines } of answers) {
    const [receipt = ''] = lines('payment-receipt')
    const told = `${whole}${Buffer.from(receipt, 'base64url').toString()}`
    for (const preimage of preimages)
      assert.ok(!told.includes(preimage), `an answer with ${status}`)
  }
  // Every line about an order says which one, by what the operator can ask for.
  const hashes = new Set(rows.map((row) => String(row.payment_hash)))
  for (const line of logged(server).filter(({ event }) => String(event).startsWith('order.'))) {
    assert.ok(hashes.has(String(line.paymentHash)), JSON.stringify(line))
  }
})

function logged(server: TestServer): Record<string, unknown>[] {
  return server.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
}
