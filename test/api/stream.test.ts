import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { CatchCapability, CatchEvent, EventFilter } from '../../src/client/index.ts'
import { type Answer, phraseIn } from '../support/answer.ts'
import { anInbox, ask, send } from '../support/catch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { hideTable } from '../support/store.ts'
import { until } from '../support/until.ts'
import { answersTo, followed, listen, sendMany, sequenceOf } from './catch-stream.ts'

const DAY = 24 * 60 * 60 * 1000
const HEARTBEAT = 15_000

test('a stream begins with what comes next, and tells where that is', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await sendMany(server, inbox, { count: 3, body: String })
  const stream = await listen(t, server, inbox)
  assert.equal(stream.status, 200)
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(stream.headers.get('cache-control'), 'no-store')
  assert.equal(stream.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(stream.headers.get('access-control-allow-origin'), '*')
  assert.equal(stream.headers.get('x-accel-buffering'), 'no')
  await sendMany(server, inbox, { count: 1, body: () => 'four\r\nlines\n\rof it' })
  const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
  assert.ok(event)
  assert.deepEqual(await stream.next(), { event: 'capture', data: JSON.stringify(event) })
  assert.equal(
    stream.text(),
    `id: 3\n\nid: 4\nevent: capture\ndata: ${JSON.stringify(event)}\n\n`,
    'exactly this, on the wire',
  )
})

test('a stream that the store fails ends without a word, so that its reader comes again', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const stream = await listen(t, server, inbox)
  const show = await hideTable(server, 'catch_inbox_use')
  let end: unknown
  void stream.next().then((event) => {
    end = event
  })
  await until('the stream ends', () => end === null)
  await show()
  assert.equal((await listen(t, server, inbox)).status, 200)
})

test('Last-Event-ID is where a stream goes on: at the beginning, in between, beyond the latest', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await sendMany(server, inbox, { count: 3, body: String })
  const cases: [lastEventId: string, told: number[]][] = [
    ['0', [1, 2, 3, 4, 5, 6]],
    ['000', [1, 2, 3, 4, 5, 6]],
    ['2', [3, 4, 5, 6]],
    ['3', [4, 5, 6]],
    ['5', [6]],
    ['', [4, 5, 6]],
  ]
  const streams = await Promise.all(
    cases.map(([lastEventId]) => listen(t, server, { ...inbox, lastEventId })),
  )
  await sendMany(server, inbox, { count: 3, body: String })
  for (const [i, [lastEventId, expected]] of cases.entries()) {
    const told: number[] = []
    while (told.length < expected.length) {
      told.push(sequenceOf((await streams[i]?.next())?.data))
    }
    assert.deepEqual(told, expected, `after ${lastEventId}`)
  }
})

test('a stream takes the filters and the search of the list, and goes on after what it leaves out', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  const body = gzipSync('{"type":"Invoice.Paid"}')
  const paid = { method: 'PUT', headers: { 'content-encoding': 'gzip' }, body }
  for (const request of [{ method: 'PUT' }, paid, { method: 'POST', body: 'invoice.paid' }]) {
    await send(server, inbox, request)
  }
  const first = async (filter: EventFilter, after?: number) => {
    const stream = owner.stream({ filter, ...(after === undefined ? {} : { after }) })
    const { value } = await stream.next()
    await stream.return('active')
    return (value as CatchEvent).sequence
  }
  assert.equal(await first({ method: 'put', q: 'invoice.paid' }, 0), 2)
  assert.equal(await first({ q: 'INVOICE.paid' }, 2), 3)
  const later = first({ q: 'jürgen' })
  const waited = owner.next({ after: 0, filter: { q: 'jürgen' } })
  await sendMany(server, inbox, { count: 40, body: String })
  await send(server, inbox, { path: '?name=J%C3%BCrgen', method: 'GET' })
  assert.deepEqual([await later, (await waited).sequence], [44, 44])
  const { status } = await ask(
    server,
    `/api/catch/${inbox.publicId}/stream?methd=PUT`,
    inbox.ownerToken,
  )
  assert.equal(status, 400)
})

test('a malformed Last-Event-ID is refused, and takes no place', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const refused = ['x', '-1', '+1', '1.5', '1e3', '0x1', '1 2', '1,2', '9'.repeat(16), 'é']
  for (let round = 0; round < 7; round++) {
    for (const lastEventId of refused) {
      const { status, text } = await askForStream(server, inbox, { lastEventId })
      assert.deepEqual([status, text], [400, '{"error":"invalid query"}'], lastEventId)
    }
  }
  assert.equal((await listen(t, server, inbox)).status, 200)
})

test('a silent stream says now and then that it is there', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const answers = answersTo(t, '/stream')
  const stream = await listen(t, server, inbox)
  const [answer] = answers
  for (let times = 0; times < 2; times++) {
    await until('all is sent', () => answer?.writableLength === 0)
    t.mock.timers.tick(HEARTBEAT)
  }
  await sendMany(server, inbox, { count: 1, body: String })
  assert.equal(sequenceOf((await stream.next())?.data), 1)
  assert.ok(stream.text().startsWith('id: 0\n\n:\n\n:\n\nid: 1\n'), stream.text().slice(0, 40))
})

test('an inbox that is full tells its last events, then that it is exhausted', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const early = followed(server.mayfly.catch(inbox).stream({ after: 0 }))
  await sendMany(server, inbox, { count: 100, body: String })
  const all = Array.from({ length: 100 }, (_, i) => i + 1)
  const { events, end } = await early
  assert.deepEqual([events.map(({ sequence }) => sequence), end], [all, 'exhausted'])
  const late = await followed(server.mayfly.catch(inbox).stream({ after: 90 }))
  assert.deepEqual(
    [late.events.map(({ sequence }) => sequence), late.end],
    [all.slice(90), 'exhausted'],
  )
  const none = await listen(t, server, inbox)
  assert.deepEqual(await none.next(), { event: 'end', data: '{"status":"exhausted"}' })
  assert.equal(await none.next(), null, 'and the stream is closed')
})

test('a stream shows one inbox and no other', async (t) => {
  const server = await startServer(t)
  const [mine, theirs] = [await anInbox(server), await anInbox(server)]
  const stream = await listen(t, server, { ...mine, lastEventId: '0' })
  await sendMany(server, theirs, { count: 3, body: () => 'theirs' })
  await sendMany(server, mine, { count: 1, body: () => 'mine' })
  const told = await stream.next()
  assert.equal((JSON.parse(told?.data ?? '') as CatchEvent).body, 'mine')
})

test('a destroyed inbox ends its streams, and so does an expired one', async (t) => {
  const server = await startServer(t)
  const destroyed = await anInbox(server)
  const expired = await anInbox(server)
  const streams = await Promise.all(
    [destroyed, expired].map((inbox) => listen(t, server, { ...inbox, lastEventId: '0' })),
  )
  for (const [i, inbox] of [destroyed, expired].entries()) {
    await sendMany(server, inbox, { count: 1, body: String })
    assert.equal(sequenceOf((await streams[i]?.next())?.data), 1)
  }
  await server.mayfly.catch(destroyed).destroy()
  const gone = { event: 'end', data: '{"status":"manually_destroyed"}' }
  assert.deepEqual([await streams[0]?.next(), await streams[0]?.next()], [gone, null])

  // Nobody wakes a stream for this; it looks by itself.
  server.clock.advance(DAY)
  const over = { event: 'end', data: '{"status":"expired"}' }
  assert.deepEqual([await streams[1]?.next(), await streams[1]?.next()], [over, null])

  await assert.rejects(followed(server.mayfly.catch(destroyed).stream()), { status: 404 })
  assert.deepEqual(await followed(server.mayfly.catch(expired).stream({ after: 0 })), {
    events: [],
    end: 'expired',
  })
})

/** For a stream that is refused. */
async function askForStream(
  { url }: TestServer,
  inbox: CatchCapability,
  { lastEventId }: { lastEventId?: string } = {},
): Promise<Answer & { headers: Headers }> {
  const response = await fetch(`${url}/api/catch/${inbox.publicId}/stream`, {
    headers: {
      authorization: `Bearer ${inbox.ownerToken}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  })
  return {
    status: response.status,
    text: phraseIn(response.status, await response.text()),
    headers: response.headers,
  }
}
