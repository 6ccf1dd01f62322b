import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { Pool } from 'undici'
import { resumeInbox, suspendInbox } from '../../src/catch/store.ts'
import { createEventParser, type StreamEvent } from '../../src/client/event-stream.ts'
import { type CatchCapability, type CatchEvent, createMayfly } from '../../src/client/index.ts'
import type { Statement } from '../../src/db/db.ts'
import { openSqlite } from '../../src/db/sqlite.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { createEventStreams, type EventStream } from '../../src/http/event-stream.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const DAY = 24 * 60 * 60 * 1000
const HEARTBEAT = 15_000
const KIB = 1024
const SENDERS = 64
const UNAUTHORIZED = { status: 401, text: '{"error":"unauthorized"}' }
const NOT_FOUND = { status: 404, text: '{"error":"not found"}' }

// The stream

test('20 readers that are cut off again and again each see 10 000 events once and in order', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const total = 10_000
  let cuts = 0
  const readers = Array.from({ length: 20 }, (_, place) => {
    const random = mulberry32(place + 1)
    const opened = Promise.withResolvers<void>()
    const fetch = cutting((connection) => {
      cuts++
      // Where a stream begins is told with its first bytes; before that there is nothing to keep.
      return connection === 0 ? 100 : Math.floor(random() ** 3 * 1_500_000) + 1
    }, opened.resolve)
    const inboxOf = createMayfly({ baseUrl: server.url, fetch }).catch
    // Half of them name the beginning, and half begin with what comes once they are there.
    return {
      opened: opened.promise,
      ended: inOrder(inboxOf(inbox).stream(place % 2 === 0 ? { after: 0 } : {})),
    }
  })
  await Promise.all(readers.map(({ opened }) => opened))
  await sendMany(server, inbox, total, (n) => JSON.stringify({ n, text: 'é€😀' }))
  for (const { ended } of readers) {
    assert.deepEqual(await ended, { told: total, end: 'exhausted' })
  }
  assert.ok(cuts > 200, `${cuts} cuts`)
})

test('a reader that stops reading costs a bounded number of bytes, and nobody else anything', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const total = 400
  const body = 'x'.repeat(64 * KIB)
  const responses = answersTo(t, '/stream')
  const stalled = await openUnread(t, server, inbox)
  const [answer] = responses
  assert.ok(answer)

  let most = 0
  const told: number[] = []
  const reading = (async () => {
    for await (const { sequence } of server.mayfly.catch(inbox).stream({ after: 0 })) {
      told.push(sequence)
      most = Math.max(most, answer.writableLength)
      if (sequence === total) return
    }
  })()
  await sendMany(server, inbox, total, () => body)
  await reading
  assert.deepEqual(
    told,
    Array.from({ length: total }, (_, i) => i + 1),
  )
  assert.equal(answer.writableNeedDrain, true, 'it did stop')
  assert.ok(most < 256 * KIB, `${most} bytes waited for it in this process`)
  const { bytesWritten } = answer.socket ?? {}
  assert.ok((bytesWritten ?? Number.POSITIVE_INFINITY) < (total * body.length) / 2)

  // It reads on, and has missed nothing.
  const parser = createEventParser()
  const late: number[] = []
  for await (const chunk of stalled) {
    for (const { data } of parser.push(chunk as Buffer)) late.push(sequenceOf(data))
    if (late.length === total) break
  }
  assert.deepEqual(late, told)
})

test('a stream begins with what comes next, and tells where that is', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await sendMany(server, inbox, 3, String)
  const stream = await listen(t, server, inbox)
  assert.equal(stream.status, 200)
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(stream.headers.get('cache-control'), 'no-store')
  assert.equal(stream.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(stream.headers.get('access-control-allow-origin'), '*')
  assert.equal(stream.headers.get('x-accel-buffering'), 'no')
  await sendMany(server, inbox, 1, () => 'four\r\nlines\n\rof it')
  const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
  assert.ok(event)
  assert.deepEqual(await stream.next(), { event: 'capture', data: JSON.stringify(event) })
  assert.equal(
    stream.text(),
    `id: 3\n\nid: 4\nevent: capture\ndata: ${JSON.stringify(event)}\n\n`,
    'exactly this, on the wire',
  )
})

test('Last-Event-ID is where a stream goes on: at the beginning, in between, beyond the latest', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await sendMany(server, inbox, 3, String)
  const cases: [lastEventId: string, told: number[]][] = [
    ['0', [1, 2, 3, 4, 5, 6]],
    ['000', [1, 2, 3, 4, 5, 6]],
    ['2', [3, 4, 5, 6]],
    ['3', [4, 5, 6]],
    ['5', [6]],
    ['', [4, 5, 6]],
  ]
  const streams = await Promise.all(
    cases.map(([lastEventId]) => listen(t, server, inbox, { lastEventId })),
  )
  await sendMany(server, inbox, 3, String)
  for (const [i, [lastEventId, expected]] of cases.entries()) {
    const told: number[] = []
    while (told.length < expected.length) {
      told.push(sequenceOf((await streams[i]?.next())?.data))
    }
    assert.deepEqual(told, expected, `after ${lastEventId}`)
  }
})

test('a Last-Event-ID that is none is refused, and takes no place', async (t) => {
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
  const stream = await listen(t, server, inbox)
  t.mock.timers.tick(HEARTBEAT)
  t.mock.timers.tick(HEARTBEAT)
  await sendMany(server, inbox, 1, String)
  assert.equal(sequenceOf((await stream.next())?.data), 1)
  assert.ok(stream.text().startsWith('id: 0\n\n:\n\n:\n\nid: 1\n'), stream.text().slice(0, 40))
})

test('an inbox that is full tells its last events, then that it is exhausted', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const early = followed(server.mayfly.catch(inbox).stream({ after: 0 }))
  await sendMany(server, inbox, 100, String)
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

test('a destroyed inbox ends its streams, and so does an expired one', async (t) => {
  const server = await startServer(t)
  const destroyed = await anInbox(server)
  const expired = await anInbox(server)
  const streams = await Promise.all(
    [destroyed, expired].map((inbox) => listen(t, server, inbox, { lastEventId: '0' })),
  )
  for (const [i, inbox] of [destroyed, expired].entries()) {
    await sendMany(server, inbox, 1, String)
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

test('a suspended inbox keeps its streams, which go on when it is resumed', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const stream = await listen(t, server, inbox)
  await asOperator(server, suspendInbox(inbox.publicId, server.clock.now()))
  assert.equal((await fetch(`${server.url}/c/${inbox.publicId}`)).status, 401)
  await asOperator(server, resumeInbox(inbox.publicId))
  await sendMany(server, inbox, 1, String)
  assert.equal(sequenceOf((await stream.next())?.data), 1)
})

test('a stream shows one inbox and no other', async (t) => {
  const server = await startServer(t)
  const [mine, theirs] = [await anInbox(server), await anInbox(server)]
  const stream = await listen(t, server, mine, { lastEventId: '0' })
  await sendMany(server, theirs, 3, () => 'theirs')
  await sendMany(server, mine, 1, () => 'mine')
  const told = await stream.next()
  assert.equal((JSON.parse(told?.data ?? '') as CatchEvent).body, 'mine')
})

test('a stop of the server ends its streams, and a reader goes on after the restart', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const listening = await listen(t, server, inbox, { lastEventId: '0' })
  const opened = Promise.withResolvers<void>()
  // The port is another one after the restart.
  const { catch: ofInbox } = createMayfly({
    baseUrl: 'http://mayfly.test',
    fetch: async (input, init) => {
      const response = await fetch(`${server.url}${new URL(String(input)).pathname}`, init)
      opened.resolve()
      return response
    },
  })
  const reading = followed(ofInbox(inbox).stream())
  await opened.promise
  await sendMany(server, inbox, 1, String)
  assert.equal(sequenceOf((await listening.next())?.data), 1)
  await server.restart()
  assert.equal(await listening.next(), null, 'without an end: there may be more')
  await sendMany(server, inbox, 99, String)
  const { events, end } = await reading
  assert.deepEqual(
    [events.map(({ sequence }) => sequence), end],
    [Array.from({ length: 100 }, (_, i) => i + 1), 'exhausted'],
  )
})

test('a reader that has stopped reading does not hold up the stop of the server', {
  timeout: 30_000,
}, async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const responses = answersTo(t, '/stream')
  await openUnread(t, server, inbox)
  await sendMany(server, inbox, 200, () => 'x'.repeat(64 * KIB))
  await until('the reader is full', () => responses[0]?.writableNeedDrain)
  await server.stop()
})

test('a connection that says nothing does not hold up the stop of the server', {
  timeout: 30_000,
}, async (t) => {
  const server = await startServer(t)
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  assert.equal((await fetch(`${server.url}/health`)).status, 200)
  await server.stop()
  await closed
})

test('an inbox has 64 listeners; the 65th waits until one has left', async (t) => {
  const server = await startServer(t)
  const [inbox, other] = [await anInbox(server), await anInbox(server)]
  const streams = await Promise.all(Array.from({ length: 64 }, () => listen(t, server, inbox)))
  assert.ok(streams.every(({ status }) => status === 200))
  const refused = await askForStream(server, inbox)
  assert.deepEqual([refused.status, refused.text], [429, '{"error":"rate limited"}'])
  assert.equal(refused.headers.get('retry-after'), '10')
  assert.equal((await listen(t, server, other)).status, 200)
  await sendMany(server, inbox, 1, String)
  for (const stream of streams) assert.equal(sequenceOf((await stream.next())?.data), 1)

  streams[0]?.leave()
  await until('room for one', async () => {
    const stream = await listen(t, server, inbox)
    return stream.status === 200
  })
  assert.equal((await askForStream(server, inbox)).status, 429)
})

// One event

test('an event is read by its id as the list shows it, and its body to the byte', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const bodies = [
    Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
    Buffer.from(randomBytes(64 * KIB)),
    Buffer.alloc(0),
    Buffer.from('<script>alert(1)</script>'),
    Buffer.from('\ufeffé'),
  ]
  for (const body of bodies) {
    const headers = { 'content-type': 'text/html' }
    await fetch(`${server.url}/c/${inbox.publicId}/x?y`, { method: 'POST', body, headers })
  }
  const { events } = await server.mayfly.catch(inbox).page()
  for (const event of events) {
    const path = `/api/catch/${inbox.publicId}/events/${event.id}`
    const one = await ask(server, path, inbox.ownerToken)
    assert.deepEqual([one.status, JSON.parse(one.text)], [200, event])
    const answer = await fetch(`${server.url}${path}/body`, {
      headers: { authorization: `Bearer ${inbox.ownerToken}` },
    })
    assert.equal(answer.status, 200)
    const body = Buffer.from(await answer.arrayBuffer())
    assert.deepEqual(body, bodies[event.sequence - 1])
    assert.equal(createHash('sha256').update(body).digest('hex'), event.bodySha256)
    const headers = Object.fromEntries(answer.headers)
    delete headers.date
    assert.deepEqual(headers, {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': headers['access-control-expose-headers'],
      'cache-control': 'no-store',
      connection: 'keep-alive',
      'content-disposition': `attachment; filename="${event.id}.bin"`,
      'content-length': String(body.length),
      'content-security-policy': "default-src 'none'; sandbox",
      'content-type': 'application/octet-stream',
      'cross-origin-resource-policy': 'cross-origin',
      'keep-alive': 'timeout=72',
      'x-content-type-options': 'nosniff',
    })
  }
})

const eventPaths = ['/events/{eventId}', '/events/{eventId}/body']
for (const suffix of eventPaths) {
  test(`GET ${suffix} finds an owner's own events while they are there, and nothing else`, async (t) => {
    const server = await startServer(t)
    const [inbox, other] = [await anInbox(server), await anInbox(server)]
    await sendMany(server, inbox, 2, String)
    await sendMany(server, other, 1, String)
    const [kept, deleted] = (await server.mayfly.catch(inbox).page()).events
    const [theirs] = (await server.mayfly.catch(other).page()).events
    assert.ok(kept && deleted && theirs)
    await server.mayfly.catch(inbox).deleteEvent(deleted.id)
    const at = (id: string, publicId = inbox.publicId): string =>
      `/api/catch/${publicId}${suffix.replace('{eventId}', id)}`
    const ids = [
      deleted.id,
      theirs.id,
      randomUUID(),
      kept.id.slice(0, -1),
      `${kept.id}0`,
      kept.id.replaceAll('-', ''),
      `${kept.id.slice(0, 15)}${kept.id[15] === '0' ? '1' : '0'}${kept.id.slice(16)}`,
      `${kept.id.slice(0, 24)}ffffffffffff`,
      'x',
      '1',
      '%20',
      '%00',
      '__proto__',
      'x'.repeat(200),
    ]
    for (const id of ids) {
      assert.deepEqual(await ask(server, at(id), inbox.ownerToken), NOT_FOUND, id)
    }
    assert.deepEqual(await ask(server, at(kept.id), other.ownerToken), NOT_FOUND)
    assert.deepEqual(await ask(server, at(kept.id), inbox.ingestToken), UNAUTHORIZED)
    assert.deepEqual(await ask(server, at(kept.id, other.publicId), other.ownerToken), NOT_FOUND)
    assert.deepEqual(await ask(server, at('x'), null), UNAUTHORIZED, 'who asks comes first')
    assert.equal((await ask(server, at(kept.id), inbox.ownerToken)).status, 200)

    server.clock.advance(DAY)
    assert.deepEqual(await ask(server, at(kept.id), inbox.ownerToken), NOT_FOUND, 'expired')
    await server.mayfly.catch(inbox).destroy()
    assert.deepEqual(await ask(server, at(kept.id), inbox.ownerToken), NOT_FOUND, 'destroyed')
  })
}

test('a stream is the owner’s alone', async (t) => {
  const server = await startServer(t)
  const [inbox, other] = [await anInbox(server), await anInbox(server)]
  const path = `/api/catch/${inbox.publicId}/stream`
  const unknown = '/api/catch/catch_0000000000000000000000/stream'
  const cases: [note: string, path: string, token: string | null, expected: object][] = [
    ['no token', path, null, UNAUTHORIZED],
    ['a token that is none', path, 'x', UNAUTHORIZED],
    ['its ingest token', path, inbox.ingestToken, UNAUTHORIZED],
    ['a token of another product', path, tokenOf('pulse_owner', randomBytes(32)), UNAUTHORIZED],
    ["another owner's token", path, other.ownerToken, NOT_FOUND],
    ["nobody's token", path, tokenOf('catch_owner', randomBytes(32)), NOT_FOUND],
    ['an unknown inbox', unknown, inbox.ownerToken, NOT_FOUND],
    ['an inbox that is none', '/api/catch/x/stream', inbox.ownerToken, NOT_FOUND],
    ['an unknown inbox without a token', unknown, null, UNAUTHORIZED],
  ]
  for (const [note, where, token, expected] of cases) {
    assert.deepEqual(await ask(server, where, token), expected, note)
  }
  const bad = await fetch(server.url + path, {
    headers: { authorization: `Bearer ${other.ownerToken}`, 'last-event-id': 'x' },
  })
  assert.equal(bad.status, 404, 'who asks comes before what is asked')
})

// The server's end of a stream, by itself

test('a client that left before its stream began leaves nothing behind', async (t) => {
  const { url, opened, count, gate, app } = await aStreamServer(t)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { hostname, port } = new URL(url())
  const socket = connect(Number(port), hostname, () => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  })
  const request = await gate.asked
  socket.destroy()
  await until('the server knows', () => request.destroyed && request.socket.destroyed)
  gate.open()
  const stream = await opened
  assert.equal(stream.isOpen(), false)
  assert.equal(await stream.send({ event: 'x', data: 'x' }), false)
  await stream.wait(1_000_000)
  assert.equal(count(), 0)
})

test('a stream that begins while the server stops ends at once', async (t) => {
  const { url, opened, count, gate, app } = await aStreamServer(t)
  const stopping = new Promise<void>((resolve) => {
    app.addHook('preClose', async () => resolve())
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const answer = fetch(url())
  await gate.asked
  const closed = app.close()
  await stopping
  gate.open()
  const stream = await opened
  assert.equal(stream.isOpen(), false)
  assert.equal(count(), 0)
  assert.equal(await (await answer).text(), '')
  await closed
})

test('a reader that takes nothing for a minute is let go', async (t) => {
  const { url, opened, count, gate, app } = await aStreamServer(t)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { hostname, port } = new URL(url())
  const socket = connect(Number(port), hostname, () => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.pause()
  await gate.asked
  gate.open()
  const stream = await opened
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let sent = 0
  let isSent = true
  const data = 'x'.repeat(256 * KIB)
  const sending = (async () => {
    while (await stream.send({ event: 'x', data })) sent++
  })()
  // It stops where no send ends any more, however often everything else gets its turn.
  while (isSent) {
    const before = sent
    for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve))
    isSent = sent > before
  }
  assert.equal(count(), 1)
  t.mock.timers.tick(60_000)
  await sending
  t.mock.timers.reset()
  await until('it is gone', () => count() === 0)
  assert.ok(sent * data.length < 64 * KIB * KIB)
})

type Answer = { status: number; text: string }

type Listening = {
  status: number
  headers: Headers
  /** The next event, or null when the stream is over. */
  next(): Promise<StreamEvent | null>
  /** Everything that came so far. */
  text(): string
  leave(): void
}

async function listen(
  t: TestContext,
  server: TestServer,
  inbox: CatchCapability,
  { lastEventId }: { lastEventId?: string } = {},
): Promise<Listening> {
  const leaving = new AbortController()
  t.after(() => leaving.abort())
  const response = await fetch(`${server.url}/api/catch/${inbox.publicId}/stream`, {
    signal: leaving.signal,
    headers: {
      authorization: `Bearer ${inbox.ownerToken}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  })
  const parser = createEventParser()
  const reader = response.body?.getReader()
  const waiting: StreamEvent[] = []
  let text = ''
  return {
    status: response.status,
    headers: response.headers,
    async next() {
      for (;;) {
        const event = waiting.shift()
        if (event) return event
        const read = await reader?.read()
        if (!read || read.done) return null
        text += Buffer.from(read.value).toString()
        waiting.push(...parser.push(read.value))
      }
    },
    text: () => text,
    leave: () => leaving.abort(),
  }
}

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
  return { status: response.status, text: await response.text(), headers: response.headers }
}

/** A stream from the beginning that is open, and of which nothing is read until it is iterated. */
async function openUnread(
  t: TestContext,
  server: TestServer,
  { publicId, ownerToken }: CatchCapability,
): Promise<IncomingMessage> {
  const opened = Promise.withResolvers<IncomingMessage>()
  const request = get(`${server.url}/api/catch/${publicId}/stream`, {
    agent: false,
    headers: { authorization: `Bearer ${ownerToken}`, 'last-event-id': '0' },
  })
  request.on('response', opened.resolve)
  request.on('error', opened.reject)
  t.after(() => request.destroy())
  const response = await opened.promise
  response.on('error', () => {})
  return response
}

/** The server's side of every request from now on whose path ends like this. */
function answersTo(t: TestContext, suffix: string): ServerResponse[] {
  const responses: ServerResponse[] = []
  const started = channel('http.server.request.start')
  const onStart = (message: unknown): void => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    if (request.url?.endsWith(suffix)) responses.push(response)
  }
  started.subscribe(onStart)
  t.after(() => started.unsubscribe(onStart))
  return responses
}

async function followed(
  events: AsyncGenerator<CatchEvent, string, undefined>,
): Promise<{ events: CatchEvent[]; end: string }> {
  const told: CatchEvent[] = []
  for (;;) {
    const next = await events.next()
    if (next.done) return { events: told, end: next.value }
    told.push(next.value)
  }
}

/** Every event is the next one, and whole. */
async function inOrder(
  events: AsyncGenerator<CatchEvent, string, undefined>,
): Promise<{ told: number; end: string }> {
  for (let told = 0; ; told++) {
    const next = await events.next()
    if (next.done) return { told, end: next.value }
    assert.equal(next.value.sequence, told + 1)
    assert.ok(next.value.body.endsWith('"text":"é€😀"}'))
  }
}

/** A fetch whose n-th connection is lost after so many bytes. */
function cutting(
  bytesOf: (connection: number) => number,
  onOpen: () => void,
): typeof globalThis.fetch {
  let connections = 0
  return async (input, init) => {
    const response = await fetch(input, init)
    onOpen()
    if (response.status !== 200 || !response.body) return response
    let left = bytesOf(connections++)
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('terminated'))
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
}

/** Bodies 1 to `count`, many at a time; each has to be taken. */
async function sendMany(
  { url }: TestServer,
  { publicId }: CatchCapability,
  count: number,
  bodyOf: (n: number) => string,
): Promise<void> {
  const pool = new Pool(url, { connections: SENDERS })
  let sent = 0
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (sent < count) {
        const { statusCode, body } = await pool.request({
          method: 'POST',
          path: `/c/${publicId}`,
          body: bodyOf(++sent),
        })
        await body.dump()
        assert.equal(statusCode, 204)
      }
    }),
  )
  await pool.close()
}

/** A server with one route, which opens a stream when the test lets it. */
async function aStreamServer(t: TestContext): Promise<{
  app: App
  url(): string
  opened: Promise<EventStream>
  count(): number
  gate: { asked: Promise<IncomingMessage>; open(): void }
}> {
  const app = await createApp({
    log: pino({ level: 'silent' }),
    publicUrl: () => 'http://x',
    schemas: {},
  })
  const streams = createEventStreams(app)
  const asked = Promise.withResolvers<IncomingMessage>()
  const gate = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<EventStream>()
  app.get('/', async (request, reply) => {
    asked.resolve(request.raw)
    await gate.promise
    opened.resolve(streams.open(reply))
  })
  t.after(() => app.close())
  return {
    app,
    url: () => `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    opened: opened.promise,
    count: streams.count,
    gate: { asked: asked.promise, open: gate.resolve },
  }
}

function anInbox(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'long' = 'spark',
): Promise<CatchCapability> {
  return mayfly.buyCatch({ planId, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

async function ask({ url }: TestServer, path: string, token: string | null): Promise<Answer> {
  const answer = await fetch(url + path, {
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
  })
  return { status: answer.status, text: await answer.text() }
}

/** What the operator's commands do, on the file of the running server. */
async function asOperator({ file }: TestServer, change: Statement): Promise<void> {
  const store = await openSqlite(file)
  await store.write([change])
  await store.close()
}

function sequenceOf(data: string | undefined): number {
  return (JSON.parse(data ?? 'null') as CatchEvent | null)?.sequence ?? Number.NaN
}

/** Numbers from 0 to 1 that look random and are the same in every run. */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
