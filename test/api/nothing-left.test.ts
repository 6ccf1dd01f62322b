/** What was refused, broken off or given up leaves no memory, stream, timer or listener behind. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { anInbox } from '../support/catch.ts'
import type { After } from '../support/folder.ts'
import { errorsLogged } from '../support/http.ts'
import { countLeftovers } from '../support/leftovers.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { hideTable } from '../support/store.ts'
import { until } from '../support/until.ts'

const KB = 1024

/** What a client does, and what it is about. */
const CLIENTS: [string, (world: World) => Promise<unknown>][] = [
  ['a body above the limit', ({ toInbox }) => whole(toInbox(200 * KB), 200 * KB)],
  ['a body that is broken off', ({ toInbox }) => brokenOff(toInbox(60 * KB))],
  ['a body of a whisper that is broken off', ({ whisper }) => brokenOff(whisper(60 * KB))],
  ['a whisper that is too large', ({ whisper }) => whole(whisper(70_000), 70_000)],
  ['a message of MCP that is broken off', ({ mcp }) => brokenOff(mcp(60 * KB))],
  ['a message of MCP that is no JSON', ({ mcp }) => whole(mcp(60 * KB), 60 * KB)],
  ['a stream that its reader leaves', ({ owner }) => left(owner('stream'))],
  ['a wait that its reader leaves', ({ owner }) => left(owner('events?wait=30&after=0'))],
  ['a page that its reader leaves', ({ owner }) => left(owner('events'))],
]

test('nothing is left of what clients broke off, and of what was refused', async (t) => {
  const world = await aWorld(t)
  for (const [, act] of CLIENTS) await act(world)
  await assertNothingHeld(world, 'at first')
  const count = countLeftovers(t)
  const before = count()
  for (const [what, act] of CLIENTS) {
    for (let i = 0; i < 5; i++) await act(world)
    await assertNothingHeld(world, what)
  }
  await until('the timers have ended', () => count().timers < 5)
  assert.equal(count().listeners, before.listeners)
  const { server, inbox } = world
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  assert.deepEqual(errorsLogged(server), [])
})

test('nothing is left of a request that the store failed', async (t) => {
  const world = await aWorld(t)
  // Of the inbox, and of the events that are read into the memory of an answer.
  for (const table of ['catch_inbox_use', 'catch_event']) {
    const show = await hideTable(world.server, table)
    for (const [what, act] of CLIENTS) {
      await act(world)
      await assertNothingHeld(world, `${what}, without ${table}`)
    }
    await show()
  }
})

type World = {
  server: TestServer
  inbox: CatchCapability
  /** The head of a request with a body of so many bytes. */
  toInbox(bytes: number): Head
  whisper(bytes: number): Head
  mcp(bytes: number): Head
  owner(path: string): Head
}
type Head = { url: string; text: string }

async function aWorld(t: After): Promise<World> {
  const server = await startServer(t, { MAYFLY_METRICS_PORT: '0' })
  const inbox: CatchCapability = await anInbox(server)
  const head = (first: string, ...lines: string[]): Head => ({
    url: server.url,
    text: `${[`${first} HTTP/1.1`, 'Host: 127.0.0.1', ...lines].join('\r\n')}\r\n\r\n`,
  })
  const length = (bytes: number): string => `Content-Length: ${bytes}`
  return {
    server,
    inbox,
    toInbox: (bytes) => head(`POST /c/${inbox.publicId}`, length(bytes)),
    whisper: (bytes) =>
      head(
        'POST /api/payments/whisper',
        ...[`Idempotency-Key: ${randomUUID()}`, 'X-Whisper-Plan: spark'],
        ...['Content-Type: application/octet-stream', length(bytes)],
      ),
    mcp: (bytes) =>
      head(
        'POST /mcp',
        ...['Content-Type: application/json', 'Accept: application/json, text/event-stream'],
        length(bytes),
      ),
    owner: (path) =>
      head(`GET /api/catch/${inbox.publicId}/${path}`, `Authorization: Bearer ${inbox.ownerToken}`),
  }
}

async function assertNothingHeld({ server }: World, what: string): Promise<void> {
  await until(`nothing is held after ${what}`, async () => {
    const { series } = await scrape(server)
    const held = [...series].filter(
      ([name, value]) =>
        /^mayfly_(reserved_bytes|open_streams|answers_waiting)\b/.test(name) && value !== 0,
    )
    return held.length === 0
  })
}

async function opened({ url }: Head) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Sends the head and half of a body, and goes away. */
async function brokenOff(head: Head): Promise<void> {
  const socket = await opened(head)
  socket.write(head.text)
  await new Promise<void>((written) => socket.write(Buffer.alloc(30 * KB), () => written()))
  await gone(socket)
}

/** Sends all of a body, and reads until there is an answer. */
async function whole(head: Head, bytes: number): Promise<void> {
  const socket = await opened(head)
  socket.write(head.text)
  socket.write(Buffer.alloc(bytes, '{'))
  await answered(socket)
  await gone(socket)
}

/** Goes away when the answer has begun, or while it waits for one. */
async function left(head: Head): Promise<void> {
  const socket = await opened(head)
  await new Promise<void>((written) => socket.write(head.text, () => written()))
  if (!head.text.includes('wait=')) await answered(socket)
  await gone(socket)
}

/** Or hung up on, also before a slow machine has read the answer: `once` would reject then. */
const answered = (socket: Socket): Promise<unknown> =>
  new Promise((resolve) => socket.once('data', resolve).once('close', resolve))

async function gone(socket: Socket): Promise<void> {
  if (socket.destroyed) return
  socket.destroy()
  await once(socket, 'close')
}
