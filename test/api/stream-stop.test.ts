import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { createMayfly } from '../../src/client/index.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { createMemory } from '../../src/http/memory.ts'
import { createEventStreams, type EventStream, type EventStreams } from '../../src/http/streams.ts'
import { anInbox } from '../support/catch.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { answersTo, followed, listen, openUnread, sendMany, sequenceOf } from './catch-stream.ts'

const KIB = 1024

test('a stop of the server ends its streams, and a reader goes on after the restart', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const listening = await listen(t, server, { ...inbox, lastEventId: '0' })
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
  await sendMany(server, inbox, { count: 1, body: String })
  assert.equal(sequenceOf((await listening.next())?.data), 1)
  await server.restart()
  assert.equal(await listening.next(), null, 'without an end: there may be more')
  await sendMany(server, inbox, { count: 99, body: String })
  const { events, end } = await reading
  assert.deepEqual(
    [events.map(({ sequence }) => sequence), end],
    [Array.from({ length: 100 }, (_, i) => i + 1), 'exhausted'],
  )
})

test('a reader that has stopped reading does not hold up the stop of the server', {
  timeout: 300_000,
}, async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const responses = answersTo(t, '/stream')
  await openUnread(t, server, inbox)
  await sendMany(server, inbox, { count: 200, body: () => 'x'.repeat(64 * KIB) })
  await until('the reader is full', () => responses[0]?.writableNeedDrain)
  await server.stop()
})

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

test('a wait that begins while the server stops is answered at once', async (t) => {
  const { url, app, streams } = await aStreamServer(t)
  const [asked, stopping] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  app.addHook('preClose', async () => stopping.resolve())
  app.get('/wait', async (_request, reply) => {
    asked.resolve()
    await stopping.promise
    return { isWaiting: streams.longPoll(reply, 60_000).isWaiting() }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const answer = fetch(`${url()}/wait`)
  await asked.promise
  const closed = app.close()
  assert.deepEqual(await (await answer).json(), { isWaiting: false })
  await closed
})

/** A server with one route, which opens a stream when the test lets it. */
async function aStreamServer(t: TestContext): Promise<{
  app: App
  streams: EventStreams
  url(): string
  opened: Promise<EventStream>
  count(): number
  gate: { asked: Promise<IncomingMessage>; open(): void }
}> {
  const app = await createApp({
    log: pino({ level: 'silent' }),
  })
  const streams = createEventStreams(
    app,
    createMemory(() => 'a network'),
  )
  const asked = Promise.withResolvers<IncomingMessage>()
  const gate = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<EventStream>()
  app.get('/', async (request, reply) => {
    asked.resolve(request.raw)
    await gate.promise
    opened.resolve(streams.open(reply, 'a capability'))
  })
  t.after(() => app.close())
  return {
    app,
    streams,
    url: () => `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    opened: opened.promise,
    count: () => [...streams.countByRoute().values()].reduce((sum, open) => sum + open, 0),
    gate: { asked: asked.promise, open: gate.resolve },
  }
}
