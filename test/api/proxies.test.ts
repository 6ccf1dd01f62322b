/** A proxy that nobody told us of makes all clients one, and a guessable key as good from everywhere. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { openOrder, payAndSettle, purchase, send } from '../support/buying.ts'
import { message } from '../support/mcp.ts'
import { look } from '../support/one-url.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** Loopback by a name that no loopback bind has: whoever binds this is reached by strangers. */
const STRANGERS = { MAYFLY_HOST: '::ffff:127.0.0.1', MAYFLY_SIMULATOR: 'public' }

test('nothing is sold to strangers behind a proxy that is not trusted, and one line says what to set', async (t) => {
  const server = await startServer(t, STRANGERS)
  assert.equal((await purchase(server, {})).status, 402)
  for (const headers of [
    { 'x-forwarded-for': '203.0.113.1' },
    { forwarded: 'for=203.0.113.1' },
    { 'x-real-ip': '203.0.113.1' },
  ]) {
    for (const answer of [await purchase(server, { headers }), await look(server, { headers })]) {
      assert.equal(answer.status, 503)
      assert.deepEqual(JSON.parse(answer.text), { error: 'checkout unavailable' })
      assert.match(answer.header('retry-after') ?? '', /^[0-9]+$/)
    }
  }
  const [line, ...more] = linesOf(server)
  assert.deepEqual(more, [])
  assert.equal(line?.level, 50)
  assert.match(String(line?.reason), /set MAYFLY_TRUSTED_PROXIES .+ purchases are refused$/)
})

test('an earlier quote is still delivered behind a proxy that is not trusted', async (t) => {
  const server = await startServer(t, STRANGERS)
  const key = randomUUID()
  await payAndSettle(server, await openOrder(server, { key }))
  assert.equal((await purchase(server, { key, from: '203.0.113.1' })).status, 200)
})

test('strangers buy behind a trusted proxy, and no warning is logged', async (t) => {
  const server = await startServer(t, { ...STRANGERS, MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  assert.equal((await purchase(server, { from: '203.0.113.1' })).status, 402)
  assert.deepEqual(linesOf(server), [])
})

test('the first forwarded request on loopback says what to set, once, and sales go on', async (t) => {
  const server = await startServer(t)
  await fetch(`${server.url}/health`)
  assert.deepEqual(linesOf(server), [])
  await fetch(`${server.url}/health`, { headers: { 'x-forwarded-for': '203.0.113.1' } })
  assert.equal((await purchase(server, { from: '203.0.113.1' })).status, 402)
  const lines = linesOf(server)
  assert.deepEqual(
    lines.map(({ level }) => level),
    [40],
  )
  assert.match(String(lines[0]?.reason), /set MAYFLY_TRUSTED_PROXIES/)
})

test("a guessable key that was forwarded by an untrusted peer counts as a stranger's each time", async (t) => {
  const server = await startServer(t)
  const forwarded = { key: 'order-0001', from: '203.0.113.1' }
  const first = await openOrder(server, forwarded)
  const again = JSON.parse((await purchase(server, forwarded)).text)
  const quote = JSON.parse(first.answer.text)
  assert.deepEqual(again, { ...quote, proofRequired: true })
  await payAndSettle(server, first)
  const refused = await purchase(server, forwarded)
  assert.deepEqual([refused.status, JSON.parse(refused.text).error], [404, PROOF])
})

test('a random key that was forwarded by an untrusted peer is never contested', async (t) => {
  const server = await startServer(t)
  const forwarded = { key: randomUUID(), from: '203.0.113.1' }
  const first = await openOrder(server, forwarded)
  assert.deepEqual(await purchase(server, forwarded), first.answer)
  await payAndSettle(server, first)
  assert.equal((await purchase(server, forwarded)).status, 200)
})

const PROOF = 'proof of payment required'

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
      assert.equal((await purchase(server, { headers })).status, 402, JSON.stringify(headers))
    }
  }
})

const isSimulatorRefused = ({ event }: { event: string }): boolean => event === 'simulator.refused'
