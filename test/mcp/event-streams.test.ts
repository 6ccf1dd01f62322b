/** How long a stream of MCP Events lasts, and that it reads no faster than its client. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { TOKEN_META } from '../../src/mcp-tools/shared.ts'
import { anInbox } from '../support/catch.ts'
import { limited } from '../support/limits.ts'
import { message, post } from '../support/mcp.ts'
import { follower, type Occurrence } from '../support/mcp-events.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const ON = { MAYFLY_MCP_EVENTS: 'on' }
const HOUR = 60 * 60 * 1000
/** With texts of 15 KiB, more than the buffers of two sockets hold. */
const EVENTS = 600
/** Events that are read together. */
const BATCH = 20

const reads = async (server: TestServer): Promise<number> => {
  const { series } = await scrape(server)
  const name = 'mayfly_http_requests_total{method="GET",route="/api/catch/:publicId/events"'
  const counts = [...series].filter(([each]) => each.startsWith(name))
  return counts.reduce((sum, [, count]) => sum + count, 0)
}

test('a stream ends after an hour, and another goes on at its last cursor', async (t) => {
  const server = await startServer(t, ON)
  const { publicId, ownerToken } = await anInbox(server, 'long')
  const agent = await follower(t, server.url, ownerToken)
  const given = { name: 'catch.received', arguments: { publicId } }
  const deliver = () => fetch(`${server.url}/c/${publicId}`, { method: 'POST', body: 'x' })
  const stream = agent.stream(given)
  assert.equal((await stream.next()).method, 'notifications/events/active')
  const told: (string | undefined)[] = []
  const take = async (): Promise<void> => {
    const { method, params } = await stream.next()
    assert.equal(method, 'notifications/events/event')
    told.push((params as unknown as Occurrence).cursor)
  }
  server.clock.advance(HOUR - 60_000)
  for (let i = 0; i < 2; i++) {
    await deliver()
    await take()
  }
  server.clock.advance(60_000)
  await deliver()
  await take()
  const meta = (await stream.ended)._meta as object
  assert.ok('io.modelcontextprotocol/subscriptionId' in meta)
  assert.deepEqual(told, ['1', '2', '3'])
  await deliver()
  const next = agent.stream({ ...given, cursor: told.at(-1) })
  assert.equal((await next.next()).method, 'notifications/events/active')
  assert.equal((await next.next()).params.cursor, '4')
  next.leave()
})

test('a stream reads no further than its client, and goes on when the client does', async (t) => {
  const rates = { 'ingest.long': { perMinute: 100_000, burst: 10_000 } }
  const server = await limited(t, rates, { ...ON, MAYFLY_METRICS_PORT: '0' })
  const { publicId, ownerToken } = await anInbox(server, 'long')
  const text = (some: string) => some.repeat(3_700)
  for (let i = 0; i < EVENTS; i++) {
    const { status } = await fetch(`${server.url}/c/${publicId}/${text('p')}?${text('q')}`, {
      ...{ method: 'POST', body: text('b') },
      headers: { 'x-long': text('h') },
    })
    assert.equal(status, 204)
  }
  const body = message('events/stream', {
    ...{ name: 'catch.received', arguments: { publicId }, cursor: '0' },
    _meta: {
      [TOKEN_META]: ownerToken,
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  })
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  const head = [
    ...['POST /mcp HTTP/1.1', 'Host: x', 'Content-Type: application/json'],
    ...['Accept: application/json, text/event-stream', 'MCP-Protocol-Version: 2026-07-28'],
    ...['Mcp-Method: events/stream', `Content-Length: ${body.length}`],
  ]
  socket.pause()
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const before = await reads(server)
  await until('it reads no more', async () => {
    const some = await reads(server)
    for (let i = 0; i < 20; i++) await post(server.url, message('ping'))
    return some > before && (await reads(server)) === some
  })
  const batches = (await reads(server)) - before
  assert.ok(batches < EVENTS / BATCH, `${batches} of ${EVENTS / BATCH} were read`)

  let received = ''
  socket.setEncoding('utf8')
  socket.on('data', (part: string) => {
    received += part
  })
  socket.resume()
  const cursors = () => Array.from(received.matchAll(/"cursor":"(\d+)"/g), ([, cursor]) => cursor)
  await until('all are told', async () => received.includes(`"cursor":"${EVENTS}"`))
  socket.destroy()
  const [active, ...told] = cursors()
  assert.equal(active, '0')
  assert.deepEqual(
    told.slice(0, EVENTS),
    Array.from({ length: EVENTS }, (_, i) => String(i + 1)),
  )
})
