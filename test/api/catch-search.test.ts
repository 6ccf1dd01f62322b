/** Searches of several inboxes at once, and of clients that leave. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { CatchCapability } from '../../src/client/index.ts'
import { anInbox, send, sendBare } from '../support/catch.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { sendMany } from './catch-stream.ts'

const KIB = 1024
const METRICS = { MAYFLY_METRICS_PORT: '0' }

const searchOf = ({ publicId, ownerToken }: CatchCapability, connection = 'keep-alive'): string =>
  `GET /api/catch/${publicId}/events?q=nowhere HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nAuthorization: Bearer ${ownerToken}\r\n\r\n`

/** A long inbox of 2 000 events and 128 MiB: a search of it takes long enough for others to come. */
async function aLargeInbox(server: TestServer): Promise<CatchCapability> {
  const inbox = await anInbox(server, 'long')
  await sendMany(server, inbox, { count: 200, body: () => 'x'.repeat(64 * KIB) })
  // Copies of rows: to send them all would take too long.
  await query(
    server,
    `insert into catch_event (inbox, sequence, salt, received_at, access, method, media_type,
       body_bytes, source_ip, ip_location, path, query, body_sha256, body, kept_bytes, header_lines)
     select inbox, e.sequence + 200 * n.n, salt, received_at, access, method, media_type, body_bytes,
       source_ip, ip_location, path, query, body_sha256, body, kept_bytes, header_lines
     from catch_event e join (select sequence as n from catch_event where sequence <= 9) n on 1 = 1`,
  )
  if (server.databaseUrl.startsWith('sqlite')) {
    await query(
      server,
      `insert into catch_event_place (id, inbox, sequence)
       select id, inbox, sequence from catch_event where sequence > 200`,
    )
  }
  await query(
    server,
    'update catch_inbox_use set accepted_request_count = 2000, request_limit = 3000',
  )
  return inbox
}

const searching = async (server: TestServer): Promise<(name: string) => number> => {
  const { series } = await scrape(server)
  return (name) => series.get(name) ?? Number.NaN
}

suite('searches of a large inbox', () => {
  const theServer = shareServer(METRICS)
  let made: Promise<CatchCapability> | undefined
  const theInbox = async () => {
    const server = await theServer()
    made ??= aLargeInbox(server)
    return { server, inbox: await made }
  }

  test('a few of 100 searches of one inbox at once wait, and the others are told when to come back', async () => {
    const { server, inbox } = await theInbox()
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => exchange(server.url, searchOf(inbox, 'close'))),
    )
    const answered = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(answered.length + refused.length, 100)
    assert.ok(answered.length >= 1, 'the one that ran')
    assert.ok(refused.length >= 60, `${refused.length} refused`)
    for (const { headers } of refused) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  })

  test('searches whose clients hang up end, and read no more of the inbox', async () => {
    const { server, inbox } = await theInbox()
    const { hostname, port } = new URL(server.url)
    const whole = async (): Promise<number> => {
      const before = (await searching(server))(
        'mayfly_store_duration_seconds_count{operation="read"}',
      )
      await server.mayfly.catch(inbox).page({ q: 'nowhere' })
      const after = (await searching(server))(
        'mayfly_store_duration_seconds_count{operation="read"}',
      )
      return after - before
    }
    const reads = await whole()
    const before = (await searching(server))(
      'mayfly_store_duration_seconds_count{operation="read"}',
    )
    const sockets = Array.from({ length: 5 }, () => connect(Number(port), hostname))
    for (const socket of sockets) {
      socket.on('error', () => undefined)
      socket.write(searchOf(inbox))
    }
    await until('the searches to be there', async () => {
      const count = await searching(server)
      return count('mayfly_searches') === 5
    })
    for (const socket of sockets) socket.destroy()
    await until('no search to run or wait', async () => {
      const count = await searching(server)
      return count('mayfly_searches') === 0
    })
    const count = await searching(server)
    const read = count('mayfly_store_duration_seconds_count{operation="read"}') - before
    assert.ok(read < 3 * reads, `${read} reads, and ${reads} for a whole search`)
  })
})

test('a search looks into every compressed body, however much they make together', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const text = (n: number) => `${'x'.repeat(700 * KIB)} needle ${n}`
  for (let n = 1; n <= 7; n++) {
    const headers = { 'content-encoding': n % 2 ? 'gzip' : 'br' }
    const body = n % 2 ? gzipSync(text(n)) : brotliCompressSync(text(n))
    await send(server, inbox, { method: 'POST', headers, body })
  }
  const search = async (query: object) =>
    (await server.mayfly.catch(inbox).page(query)).events.map(({ sequence }) => sequence)
  assert.deepEqual(await search({ q: 'NEEDLE' }), [7, 6, 5, 4, 3, 2, 1])
  assert.deepEqual(await search({ q: 'needle', after: 2 }), [3, 4, 5, 6, 7])
  assert.deepEqual(await search({ q: 'needle 2' }), [2])
  const { events, nextCursor } = await server.mayfly.catch(inbox).page({ q: 'needle', limit: 3 })
  assert.deepEqual([events.at(-1)?.sequence, nextCursor], [5, 5])
  assert.deepEqual(
    Buffer.from(events[0]?.body ?? '', 'base64'),
    gzipSync(text(7)),
    'as it was sent',
  )
})

test('a search finds what stands behind many events that a filter leaves out, and in a long content type', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'standard')
  await sendBare(server, inbox, { headers: [`Content-Type: text/x; a="${'y'.repeat(400)}needle"`] })
  await sendMany(server, inbox, { count: 600, body: (n) => `${n}` })
  const { events, nextCursor } = await server.mayfly.catch(inbox).page({ q: 'NEEDLE' })
  assert.deepEqual([events.map(({ sequence }) => sequence), nextCursor], [[1], null])
  const filtered = await server.mayfly.catch(inbox).page({ q: 'needle', contentType: 'text/x' })
  assert.deepEqual(filtered.events, events)
})
