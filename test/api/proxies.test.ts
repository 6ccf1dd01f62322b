/** A proxy that nobody told us of makes all clients one, and a guessed key as good from everywhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { books, openOrder, purchase, send } from '../support/buying.ts'
import { limited } from '../support/limits.ts'
import { message } from '../support/mcp.ts'
import { look } from '../support/one-url.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { assertError, capabilityOf, L402, PAYMENT, paidOrderVia } from '../support/wallet-flow.ts'

/** Loopback by a name that no loopback bind has: whoever binds this is reached by strangers. */
const STRANGERS = { MAYFLY_HOST: '::ffff:127.0.0.1', MAYFLY_SIMULATOR: 'public' }

test('no native quote is opened behind a proxy that is not trusted, and one line says what to set', async (t) => {
  for (const environment of [STRANGERS, { MAYFLY_SIMULATOR: 'public' }]) {
    const server = await startServer(t, environment)
    await fetch(`${server.url}/health`)
    assert.equal((await purchase(server, {})).status, 402)
    assert.deepEqual(linesOf(server), [])
    for (const headers of [
      { 'x-forwarded-for': '203.0.113.1' },
      { forwarded: 'for=203.0.113.1' },
      { 'x-real-ip': '203.0.113.1' },
    ]) {
      const answer = await purchase(server, { headers })
      assert.equal(answer.status, 503)
      assert.deepEqual(JSON.parse(answer.text), { error: 'checkout unavailable' })
      assert.match(answer.header('retry-after') ?? '', /^[0-9]+$/)
    }
    assert.equal((await books(server)).orders, 1)
    const [line, ...more] = linesOf(server)
    assert.deepEqual(more, [])
    assert.equal(line?.level, 50)
    assert.match(String(line?.reason), /set MAYFLY_TRUSTED_PROXIES .+ no native quote is opened/)
  }
})

test('who pays with a credential buys behind a proxy that is not trusted: nobody else collects that', async (t) => {
  const server = await startServer(t, STRANGERS)
  const from = '203.0.113.1'
  for (const flow of [PAYMENT, L402]) {
    const order = await paidOrderVia(server, flow, { from })
    // Behind such a proxy, everybody is another client.
    assertError(await purchase(server, { key: order.key, from }), '404 proof of payment required')
    capabilityOf(await purchase(server, order.ask))
  }
  assert.equal((await look(server, { headers: { 'x-forwarded-for': from } })).status, 402)
})

test('an earlier quote is delivered behind a proxy that is not trusted to proof alone', async (t) => {
  const server = await startServer(t, STRANGERS)
  const order = await openOrder(server)
  const preimage = await server.pay(order.bolt11)
  const ask = { key: order.key, from: '203.0.113.1' }
  assertError(await purchase(server, ask), '404 proof of payment required')
  capabilityOf(await purchase(server, { ...ask, headers: { 'payment-preimage': preimage } }))
})

test('strangers buy behind a trusted proxy, and no warning is logged', async (t) => {
  const server = await startServer(t, { ...STRANGERS, MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  assert.equal((await purchase(server, { from: '203.0.113.1' })).status, 402)
  assert.deepEqual(linesOf(server), [])
})

test('no native quote is opened for what a trusted proxy forwards without a name, and one line says so', async (t) => {
  const once = { perMinute: 1, burst: 1 }
  const trusting = { ...STRANGERS, MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
  const server = await limited(t, { quote: once }, trusting)
  const forwarded = { headers: { forwarded: 'for=203.0.113.1' } }
  await fetch(`${server.url}/health`, forwarded)
  assert.deepEqual(linesOf(server), [])
  for (const _ of [1, 2]) assertError(await purchase(server, forwarded), '503 checkout unavailable')
  assert.equal(linesOf(server).length, 1)
  // A client whom the proxy names is known, and so is a program on the proxy's own machine, from which nothing is taken.
  for (const ask of [{ from: '203.0.113.1' }, {}]) {
    assert.equal((await purchase(server, ask)).status, 402)
  }
})

function linesOf(server: TestServer): Record<string, unknown>[] {
  return server.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'proxies.unknown')
}

const LOCAL = { MAYFLY_SIMULATOR: 'local' }
const STRANGE_HEADERS = [
  { host: 'shop.example' },
  { host: 'localhost.shop.example' },
  { host: '192.0.2.1:8402' },
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-forwarded-proto': 'https' },
  { 'cf-connecting-ip': '203.0.113.1' },
  { via: '1.1 proxy' },
]

test('a simulator behind a forgotten proxy gives nothing away: no quote, no payment, and one line says what to set', async (t) => {
  const server = await startServer(t, LOCAL)
  const { bolt11 } = await openOrder(server, {})
  const pay = (headers: object) =>
    send(`${server.url}/simulator/pay`, {
      method: 'POST',
      body: JSON.stringify({ bolt11 }),
      headers: { 'content-type': 'application/json', ...headers },
    })
  for (const headers of STRANGE_HEADERS) {
    for (const answer of [
      await purchase(server, { headers }),
      await look(server, { headers }),
      await pay(headers),
    ]) {
      assert.equal(answer.status, 403, JSON.stringify(headers))
      assert.deepEqual(JSON.parse(answer.text), { error: 'simulator is local' })
    }
    const mcp = await send(`${server.url}/mcp`, {
      method: 'POST',
      body: message('tools/call', { name: 'buy_inbox', arguments: { planId: 'spark' } }),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    })
    assert.match(mcp.text, /simulator is local/, JSON.stringify(headers))
  }
  const refusals = server.logged.map((line) => JSON.parse(line)).filter(isSimulatorRefused)
  assert.equal(refusals.length, 1)
  assert.match(
    refusals[0].reason,
    /MAYFLY_LIGHTNING_URL .+ MAYFLY_TRUSTED_PROXIES .+ MAYFLY_SIMULATOR=public/,
  )
  assert.equal((await pay({ host: 'LOCALHOST:8402' })).status, 200)
  assert.equal((await purchase(server, { headers: { host: '[::1]' } })).status, 402)
})

test('a simulator that was made public, or has proxies that it trusts, sells to strangers', async (t) => {
  for (const wanted of [{ MAYFLY_SIMULATOR: 'public' }, { MAYFLY_TRUSTED_PROXIES: '192.0.2.1' }]) {
    const server = await startServer(t, { ...LOCAL, ...wanted })
    for (const headers of STRANGE_HEADERS) {
      // With a wallet protocol: no native quote is opened behind a proxy that is not trusted.
      const answer = await purchase(server, { headers, protocol: 'l402' })
      assert.equal(answer.status, 402, JSON.stringify(headers))
    }
  }
})

const isSimulatorRefused = ({ event }: { event: string }): boolean => event === 'simulator.refused'
