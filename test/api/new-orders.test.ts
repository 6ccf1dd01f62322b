/** Who may open an order: blocked networks, and ceilings on the sales of a day. What is paid never asks. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { DAY, l402Credential, openOrder, payAndSettle, poll, purchase } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { aMonitor, ping } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { aWhisper, purchaseWhisper, read } from '../support/whisper.ts'

const PROXIED = { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
const BLOCKED = { ...PROXIED, MAYFLY_BLOCKED_NETWORKS: '192.0.2.0/24,2001:db8::/32' }
const BAD = { from: '192.0.2.66' }
const GOOD = { from: '198.51.100.1' }
const REFUSED = [403, '{"error":"network refused"}'] as const
const SOLD_OUT = [503, '{"error":"sold out"}'] as const

const of = ({ status, text }: { status: number; text: string }) => [status, text]

suite('a blocked network', () => {
  test('a blocked network gets no quote, for any product and in any flow, and others do', async (t) => {
    const server = await startServer(t, BLOCKED)
    for (const from of ['192.0.2.66', '2001:db8:ffff::1', '::ffff:192.0.2.1']) {
      assert.deepEqual(of(await purchase(server, { from })), REFUSED, from)
    }
    for (const ask of [
      { target: '/api/payments/pulse' },
      { protocol: 'l402' },
      { protocol: 'payment' },
      { target: '/api/buy/catch/spark', method: 'GET' },
      { target: '/api/buy/pulse/spark/l402', method: 'GET' },
    ]) {
      assert.deepEqual(of(await purchase(server, { ...ask, ...BAD })), REFUSED, JSON.stringify(ask))
    }
    const { status, text } = await purchaseWhisper(server, BAD)
    assert.deepEqual([status, text], REFUSED)
    assert.equal((await purchase(server, GOOD)).status, 402)
    assert.equal((await purchase(server, { from: '2001:db9::1' })).status, 402)
  })

  test('what was quoted and paid works from a blocked network: poll, repeat, credential and preimage', async (t) => {
    const server = await startServer(t, BLOCKED)
    const key = randomUUID()
    const quoted = await openOrder(server, { ...GOOD, key })
    assert.equal((await purchase(server, { ...BAD, key })).status, 402, 'the repeat of a quote')
    assert.equal((await poll(server, quoted.orderId, { 'x-forwarded-for': BAD.from })).status, 402)
    const proof = { 'payment-preimage': await server.pay(quoted.bolt11) }
    const polled = await poll(server, quoted.orderId, {
      ...proof,
      'x-forwarded-for': BAD.from,
      'idempotency-key': key,
    })
    assert.equal(polled.status, 200)
    assert.equal((await purchase(server, { ...BAD, key, headers: proof })).status, 200)

    const byUrl = { target: '/api/buy/catch/spark/l402', method: 'GET' }
    const shown = await purchase(server, { ...byUrl, ...GOOD })
    const preimage = await server.pay(JSON.parse(shown.text).invoice)
    const authorization = l402Credential(shown, preimage)
    assert.equal((await purchase(server, { ...byUrl, ...BAD, authorization })).status, 200)
  })

  test('a blocked network sends to an inbox with its ingest token alone, and learns of no inbox without', async (t) => {
    const server = await startServer(t, BLOCKED)
    const inbox = await anInbox(server)
    const unknown = `catch_${'0'.repeat(22)}`
    const other = await anInbox(server)
    const send = async (publicId: string, from: string, token?: string) => {
      const answer = await fetch(`${server.url}/c/${publicId}`, {
        method: 'POST',
        headers: {
          'x-forwarded-for': from,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: 'x',
      })
      return [answer.status, await answer.text()]
    }
    for (const publicId of [inbox.publicId, unknown, 'x']) {
      assert.deepEqual(await send(publicId, BAD.from), REFUSED, publicId)
    }
    for (const token of ['x', other.ingestToken, inbox.ownerToken]) {
      assert.deepEqual(await send(inbox.publicId, BAD.from, token), REFUSED, token)
    }
    assert.deepEqual(await send(unknown, BAD.from, inbox.ingestToken), REFUSED)
    assert.deepEqual(await send(inbox.publicId, BAD.from, inbox.ingestToken), [204, ''])
    assert.deepEqual(await send(inbox.publicId, GOOD.from), [204, ''])
    const { acceptedRequestCount } = await server.mayfly.catch(inbox).status()
    assert.equal(acceptedRequestCount, 2)
  })

  test('every right bearer works from a blocked network: pings, reads, owners and extensions', async (t) => {
    const server = await startServer(t, BLOCKED)
    const [monitor, whisper, inbox] = [
      await aMonitor(server),
      await aWhisper(server),
      await anInbox(server),
    ]
    const forwarded = { 'x-forwarded-for': BAD.from }
    assert.equal((await ping(server, monitor, { headers: forwarded })).status, 204)
    assert.equal((await read(server, whisper, forwarded)).status, 200)
    for (const [path, token] of [
      [`catch/${inbox.publicId}/events`, inbox.ownerToken],
      [`pulse/${monitor.publicId}`, monitor.ownerToken],
    ]) {
      const headers = { ...forwarded, authorization: `Bearer ${token}` }
      assert.equal((await fetch(`${server.url}/api/${path}`, { headers })).status, 200)
    }
    const target = `/api/catch/${inbox.publicId}/extend`
    const owner = { 'x-owner-token': inbox.ownerToken }
    assert.equal((await purchase(server, { target, ...BAD, headers: owner })).status, 402)
  })
})

suite('a ceiling on sales', () => {
  test('no more is quoted once so many orders are settled on a UTC day, and again on the next', async (t) => {
    const server = await startServer(t, { ...PROXIED, MAYFLY_MAX_SALES_PER_DAY: '2' })
    server.awaitNoon()
    const first = await openOrder(server, GOOD)
    const [second, third] = [await openOrder(server, GOOD), await openOrder(server, BAD)]
    await payAndSettle(server, first)
    server.clock.advance(2_000)
    assert.equal((await purchase(server, GOOD)).status, 402, 'unpaid orders do not count')
    await payAndSettle(server, second)
    server.clock.advance(2_000)
    const refused = await purchase(server, { from: '203.0.113.1' })
    assert.deepEqual(of(refused), SOLD_OUT)
    const wait = Number(refused.header('retry-after'))
    assert.ok(wait > 11 * 3600 && wait <= 12 * 3600, String(wait))
    assert.deepEqual(
      of(await purchase(server, { target: '/api/buy/catch/spark', method: 'GET' })),
      SOLD_OUT,
    )

    assert.deepEqual(await available(server), [false])
    // What was quoted before is sold, and what was sold is delivered.
    assert.equal((await purchase(server, { key: third.key, ...BAD })).status, 402)
    await payAndSettle(server, third)
    assert.equal(
      (
        await poll(server, third.orderId, {
          'x-forwarded-for': BAD.from,
          'idempotency-key': third.key,
        })
      ).status,
      200,
    )
    assert.equal((await purchase(server, { key: first.key, ...GOOD })).status, 200)
    const lines = server.logged.filter((line) => line.includes('checkout.ceiling_reached'))
    assert.equal(lines.length, 1)
    server.clock.advance(DAY / 2)
    assert.equal((await purchase(server, GOOD)).status, 402)
    assert.deepEqual(await available(server), [true])
  })

  test('a network that has bought so much on a UTC day gets no more quotes, and other networks do', async (t) => {
    const server = await startServer(t, { ...PROXIED, MAYFLY_MAX_SALES_PER_NETWORK_PER_DAY: '1' })
    server.awaitNoon()
    await openOrder(server, GOOD)
    const bought = await openOrder(server, GOOD)
    assert.equal((await purchase(server, GOOD)).status, 402, 'unpaid orders do not count')
    await payAndSettle(server, bought)
    assert.deepEqual(of(await purchase(server, { from: '198.51.100.200' })), SOLD_OUT)
    assert.equal((await purchase(server, { from: '198.51.101.1' })).status, 402)
    assert.deepEqual(await available(server, '198.51.100.200'), [false])
    assert.deepEqual(await available(server, '198.51.101.1'), [true])
    server.clock.advance(DAY / 2 + 1_000)
    assert.equal((await purchase(server, GOOD)).status, 402)
  })
})

/** What the catalogue says of its plans: one value if it is the same for all. */
async function available({ url }: TestServer, from = GOOD.from): Promise<boolean[]> {
  const answer = await fetch(`${url}/api/catalog`, { headers: { 'x-forwarded-for': from } })
  const { products } = (await answer.json()) as {
    products: Record<string, { plans: { available: boolean }[] }>
  }
  const all = Object.values(products).flatMap(({ plans }) => plans.map((plan) => plan.available))
  return [...new Set(all)]
}
