/** Bodies that arrive slowly, or never: what they may hold, and what they meet. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { suspendInbox } from '../../src/catch/store.ts'
import { anInbox, asOperator, eventsOf, get, send } from '../support/catch.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const KIB = 1024
const MIB = 1024 * KIB
const DAY = 24 * 60 * 60 * 1000
/** The bounds of docs/run/limits.md. */
const INBOX_BYTES = 16 * MIB
const METRICS = { MAYFLY_METRICS_PORT: '0' }

type Sender = {
  socket: Socket
  /** All that came back so far. */
  answer(): string
  /** The first answer, once it is there. */
  answered(): Promise<string>
  closed: Promise<void>
}

/** A connection that sends the head of a POST and whatever the test writes after it. */
function aSender(
  { url }: TestServer,
  publicId: string,
  { headers, start = '' }: { headers: string[]; start?: Buffer | string },
): Sender {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  socket.on('error', () => undefined)
  socket.write(`POST /c/${publicId} HTTP/1.1\r\n${['Host: x', ...headers].join('\r\n')}\r\n\r\n`)
  socket.write(start)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  return {
    socket,
    answer: () => text,
    async answered() {
      while (!text.includes('\r\n\r\n') && !socket.destroyed) {
        await Promise.race([new Promise((resolve) => socket.once('data', resolve)), closed])
      }
      return text
    },
    closed,
  }
}

const length = (bytes: number): string => `Content-Length: ${bytes}`

test('an inbox that takes nothing says so before the body, and its connection goes on', async (t) => {
  const server = await startServer(t)
  const inboxes = await Promise.all(Array.from({ length: 4 }, () => anInbox(server)))
  const [suspended, exhausted, destroyed, expired] = inboxes.map(({ publicId }) => publicId)
  // Each is one that the service remembers as taking requests.
  for (const inbox of inboxes) assert.equal((await send(server, inbox, {})).status, 204)
  await asOperator(server, suspendInbox(suspended ?? '', server.now()))
  await Promise.all(Array.from({ length: 99 }, () => get(server, `/c/${exhausted}`)))
  await server.mayfly.catch(inboxes[2] ?? assert.fail()).destroy()
  const cases = [suspended, exhausted, destroyed, 'catch_0000000000000000000000', 'x']
  for (const publicId of [...cases, expired]) {
    if (publicId === expired) server.clock.advance(DAY)
    for (const header of [length(1_000), 'Transfer-Encoding: chunked']) {
      const sender = aSender(server, publicId ?? '', { headers: [header] })
      assert.match(await sender.answered(), /^HTTP\/1\.1 401 /, `${publicId} ${header}`)
      const rest = header === length(1_000) ? 'x'.repeat(1_000) : '1\r\nx\r\n0\r\n\r\n'
      sender.socket.write(`${rest}GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      await sender.closed
      assert.match(sender.answer(), /\}HTTP\/1\.1 200 OK\r\n.*"status":"ok"\}$/s)
    }
  }
})

test('a body that the storage has no room for is refused before it comes', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const body = Buffer.alloc(64 * KIB)
  const statuses = await Promise.all(
    Array.from(
      { length: 79 },
      async () => (await send(server, inbox, { method: 'POST', body })).status,
    ),
  )
  assert.deepEqual(new Set(statuses), new Set([204]))
  const sender = aSender(server, inbox.publicId, { headers: [length(64 * KIB)] })
  assert.match(await sender.answered(), /^HTTP\/1\.1 401 /)
  sender.socket.destroy()
  const { reasons } = await server.mayfly.catch(inbox).refusals()
  assert.deepEqual(
    reasons.map(({ reason, count }) => [reason, count]),
    [['storage_full', 1]],
  )
})

test('a refused sender that goes on and on is cut off', async (t) => {
  const server = await startServer(t)
  const sender = aSender(server, 'catch_0000000000000000000000', {
    headers: ['Transfer-Encoding: chunked'],
  })
  await sender.answered()
  const chunk = `10000\r\n${'x'.repeat(64 * KIB)}\r\n`
  let sent = 0
  for (; sent < 256 && !sender.socket.destroyed; sent++) {
    await new Promise((resolve) => sender.socket.write(chunk, resolve))
  }
  assert.ok(sent < 256, 'it was closed long before so much was taken')
  await sender.closed
  assert.match(sender.answer(), /^HTTP\/1\.1 401 /)
})

test('60 senders that are one byte short hold 16 MiB for one inbox, and the others are told when to come back', async (t) => {
  const server = await startServer(t, METRICS)
  const inbox = await anInbox(server, 'long')
  const other = await anInbox(server)
  const short = Buffer.alloc(MIB - 1)
  const senders: Sender[] = []
  let most = 0
  const held = async (): Promise<number> =>
    (await scrape(server)).series.get('mayfly_reserved_bytes{kind="inbox"}') ?? Number.NaN
  for (let i = 0; i < 60; i++) {
    senders.push(aSender(server, inbox.publicId, { headers: [length(MIB)], start: short }))
    most = Math.max(most, await held())
  }
  const isRefused = ({ answer }: Sender): boolean => answer().startsWith('HTTP/1.1 429 ')
  // All that is sent is held or refused.
  await until('every sender to be held or refused', async () => {
    const bytes = await held()
    most = Math.max(most, bytes)
    const waiting = senders.filter((sender) => !isRefused(sender)).length
    return bytes >= waiting * MIB && bytes > 0
  })
  assert.ok(most <= INBOX_BYTES, `${most} bytes`)
  const refused = senders.filter(isRefused)
  assert.ok(refused.length >= 44, `${refused.length} refused`)
  for (const { answer } of refused) {
    assert.match(answer(), /\r\nretry-after: [1-9]\d*\r\n.*\{"error":"rate limited"\}$/s)
  }
  assert.equal((await send(server, other, { method: 'POST', body: 'x' })).status, 204)
  // Who was not refused is stored once the last byte is there.
  const kept = senders.filter((sender) => !isRefused(sender))
  for (const { socket } of kept) socket.write('x')
  for (const sender of kept) assert.match(await sender.answered(), /^HTTP\/1\.1 204 /)
  await until('nothing to be held', async () => (await held()) === 0)
  assert.equal((await eventsOf(server, inbox)).length, kept.length)
  for (const { socket } of senders) socket.destroy()
})

test('a network that fills an inbox with slow bodies makes room for a webhook from elsewhere', async (t) => {
  const server = await startServer(t, { ...METRICS, MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  const inbox = await anInbox(server, 'long')
  const headers = [length(MIB), 'X-Forwarded-For: 203.0.113.9']
  const slow = Array.from({ length: 20 }, () =>
    aSender(server, inbox.publicId, { headers, start: Buffer.alloc(MIB - 1) }),
  )
  const isRefused = ({ answer }: Sender): boolean => answer().startsWith('HTTP/1.1 429 ')
  await until('the inbox to be full', async () => {
    const bytes = (await scrape(server)).series.get('mayfly_reserved_bytes{kind="inbox"}') ?? 0
    return bytes >= slow.filter((sender) => !isRefused(sender)).length * MIB && bytes > 0
  })
  const before = slow.filter(isRefused).length
  const elsewhere = { 'x-forwarded-for': '198.51.100.7' }
  const body = Buffer.alloc(MIB, 'y')
  const answers = await Promise.all(
    Array.from({ length: 4 }, () =>
      send(server, inbox, { method: 'POST', headers: elsewhere, body }),
    ),
  )
  assert.deepEqual(
    answers.map(({ status }) => status),
    [204, 204, 204, 204],
  )
  assert.ok(slow.filter(isRefused).length > before, 'the oldest slow bodies gave way')
  for (const { socket } of slow) socket.destroy()
})
