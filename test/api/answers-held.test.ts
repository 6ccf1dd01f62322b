/** What answers and streams hold for readers that do not read. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { anInbox } from '../support/catch.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { aWhisper, read } from '../support/whisper.ts'
import { answersTo, openUnread, sendMany } from './catch-stream.ts'

const KIB = 1024
const MIB = 1024 * KIB
const ON = { MAYFLY_METRICS_PORT: '0' }
/** What docs/run/limits.md promises. */
const MOST = { perCapability: 12 * MIB }
/** More than two sockets take between them. */
const EVENTS = 12

test('20 streams that nobody reads hold no more than their capability may', async (t) => {
  // So that nobody is closed while the test looks.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t, ON)
  const [inbox, other] = [await anInbox(server, 'long'), await anInbox(server, 'long')]
  await sendMany(server, inbox, { count: EVENTS, body: () => 'x'.repeat(MIB - 1) })
  const responses = answersTo(t, '/stream')
  for (let n = 0; n < 20; n++) await openUnread(t, server, inbox)
  const inAll = (bytesOf: (answer: ServerResponse) => number) =>
    responses.reduce((bytes, answer) => bytes + bytesOf(answer), 0)
  const unread = () => inAll(({ writableLength }) => writableLength)
  const written = () => inAll(({ socket }) => socket?.bytesWritten ?? 0)
  // Both figures are of one moment: nothing goes out while they are taken.
  const { unsent, held } = await until('they are all full or wait', async () => {
    const [unsent, before] = [unread(), written()]
    const { held, waiting } = await holds(server)
    const hasSome = unsent > MIB && waiting > 0
    return hasSome && (await isStill(written)) && written() === before && { unsent, held }
  })
  assert.ok(unsent <= MOST.perCapability, `${unsent} bytes wait in this process`)
  assert.ok(held <= MOST.perCapability, `${held} bytes are counted`)
  // Each part has its length before it on the wire.
  assert.ok(held + responses.length * KIB >= unsent, `of ${unsent} bytes only ${held} are counted`)

  // Somebody else's stream is as it ever was.
  await sendMany(server, other, { count: EVENTS, body: () => 'x'.repeat(MIB - 1) })
  const told: number[] = []
  for await (const { sequence } of server.mayfly.catch(other).stream({ after: 0 })) {
    told.push(sequence)
    if (sequence === EVENTS) break
  }
  assert.deepEqual(told, upTo(EVENTS))
})

test('20 pages that nobody reads hold no more than their capability may', async (t) => {
  // So that nobody is closed while the test looks.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t, ON)
  const inbox = await anInbox(server, 'long')
  await sendMany(server, inbox, { count: EVENTS, body: () => '\u0001'.repeat(MIB - 1) })
  const responses = answersTo(t, '/events?limit=50')
  await Promise.all(Array.from({ length: 20 }, () => askUnread(t, server, inbox)))
  await until('all are full or wait', async () => {
    const { waiting } = await holds(server)
    return waiting > 0 && isStill(() => responses.filter((answer) => answer.headersSent).length)
  })
  const unsent = responses.reduce((bytes, { writableLength }) => bytes + writableLength, 0)
  assert.ok(unsent <= MOST.perCapability, `${unsent} bytes wait in this process`)
  assert.ok((await holds(server)).held <= MOST.perCapability)
})

test('a WHISPER read that waits for room spends nothing when its reader leaves', async (t) => {
  const server = await startServer(t, ON)
  const whisper = await aWhisper(server, { plan: 'long', body: randomBytes(8 * MIB), readLimit: 2 })
  const headers = { authorization: `Bearer ${whisper.readToken}` }
  const unread = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = get(`${server.url}/w/${whisper.publicId}`, { agent: false, headers })
    request.on('response', resolve)
    request.on('error', reject)
    t.after(() => request.destroy())
  })
  unread.on('error', () => {})
  assert.equal(unread.statusCode, 200)
  const leaving = new AbortController()
  const second = fetch(`${server.url}/w/${whisper.publicId}`, { headers, signal: leaving.signal })
  await until('it waits', async () => (await holds(server)).waiting === 1)
  leaving.abort()
  await assert.rejects(second)
  await until('it waits no more', async () => (await holds(server)).waiting === 0)
  unread.destroy()
  assert.equal((await read(server, whisper)).status, 200, 'the second read is still there')
  assert.equal((await read(server, whisper)).status, 404)
})

async function holds(server: TestServer): Promise<{ held: number; waiting: number }> {
  const { series } = await scrape(server)
  const of = (name: string): number => series.get(name) ?? Number.NaN
  return { held: of('mayfly_reserved_bytes{kind="answer"}'), waiting: of('mayfly_answers_waiting') }
}

/** Whether a figure stays as it is however often everything else gets its turn. */
async function isStill(figure: () => number): Promise<boolean> {
  const before = figure()
  for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve))
  return figure() === before
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)

/** Sends the request for a page, and never reads what comes. */
async function askUnread(
  t: TestContext,
  server: TestServer,
  inbox: CatchCapability,
): Promise<void> {
  const sent = Promise.withResolvers<void>()
  const request = get(`${server.url}/api/catch/${inbox.publicId}/events?limit=50`, {
    agent: false,
    headers: { authorization: `Bearer ${inbox.ownerToken}` },
  })
  request.on('finish', sent.resolve)
  request.on('error', () => {})
  request.on('response', (answer) => answer.on('error', () => {}))
  t.after(() => request.destroy())
  await sent.promise
}
