import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { createApp } from '../../src/http/app.ts'
import { type Backpressure, createBackpressure } from '../../src/http/backpressure.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
/** More than the buffers of two sockets take. */
const LARGE = randomBytes(MIB).toString('hex').repeat(16)
const LOOK = 5_000

test('a socket that takes nothing for a minute is closed, whatever it was to be sent', async (t) => {
  for (const kind of ['text', 'bytes']) {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { open, backpressure, made } = await aServer(t)
    const socket = open()
    socket.pause()
    socket.write(`GET /${kind} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await stalled(backpressure, made)
    t.mock.timers.tick(LOOK)
    t.mock.timers.tick(11 * LOOK)
    assert.equal(backpressure.closedSockets(), 0, kind)
    t.mock.timers.tick(LOOK)
    assert.equal(backpressure.closedSockets(), 1, kind)
    await until('it is gone', () => [...backpressure.sockets()].length === 0)
    t.mock.timers.reset()
  }
})

test('a reader that takes a little now and then has as long as it likes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { open, backpressure, made } = await aServer(t)
  const socket = open()
  socket.pause()
  socket.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n')
  await stalled(backpressure, made)
  const [ours] = [...backpressure.sockets()]
  assert.ok(ours)
  const sent = (): number => ours.bytesWritten - ours.writableLength
  // Each time within a minute, and for longer than that in all.
  for (let round = 0; round < 3; round++) {
    t.mock.timers.tick(11 * LOOK)
    const before = sent()
    while (sent() === before && !ours.destroyed) {
      socket.read()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  assert.equal(backpressure.closedSockets(), 0)
})

test('a connection that is only kept open does not count as one that takes nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { open, backpressure, made } = await aServer(t)
  const socket = open()
  socket.resume()
  socket.write('GET /small HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it is answered', () => made.length === 1)
  t.mock.timers.tick(100 * LOOK)
  assert.equal(backpressure.closedSockets(), 0)
})

test('a pipelined request is served when the answer before it is taken, and in its order', async (t) => {
  const { open, backpressure, made } = await aServer(t)
  const socket = open()
  socket.pause()
  const requests = 5
  for (let n = 0; n < requests; n++) socket.write(`GET /text?${n} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await stalled(backpressure, made)
  assert.deepEqual(made, ['/text?0'], 'one answer, and nobody works for the others')

  let bytes = 0
  socket.on('data', (part) => {
    bytes += part.length
  })
  socket.resume()
  await until('all is read', () => bytes > requests * LARGE.length)
  assert.deepEqual(
    made,
    Array.from({ length: requests }, (_, n) => `/text?${n}`),
  )
})

test('a connection with more than 64 requests that wait is closed, and another is not', async (t) => {
  const { open, made, backpressure } = await aServer(t)
  const [patient, greedy] = [open(), open()]
  for (const socket of [patient, greedy]) socket.pause()
  const request = 'GET /text HTTP/1.1\r\nHost: x\r\n\r\n'
  patient.write(request.repeat(65))
  await until('both are there', () => [...backpressure.sockets()].length === 2 && made.length === 1)
  greedy.write(request.repeat(66))
  await until('one is gone', () => [...backpressure.sockets()].length === 1)
  assert.equal(patient.destroyed, false)
  assert.equal(made.length, 2, 'of the 66 one was begun')
})

test('a client that leaves takes what it has pipelined with it', async (t) => {
  const { open, backpressure, made } = await aServer(t)
  const socket = open()
  socket.pause()
  socket.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
  await stalled(backpressure, made)
  socket.destroy()
  await until('it is gone', () => [...backpressure.sockets()].length === 0)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(made.length, 1)
})

test('a large answer arrives byte for byte as a small one does, and says its length', async (t) => {
  const { url } = await aServer(t)
  for (const kind of ['text', 'bytes']) {
    const answer = await fetch(`${url}/${kind}`)
    assert.equal(answer.headers.get('content-length'), String(LARGE.length))
    assert.equal(await answer.text(), LARGE)
  }
})

/** A server that answers a lot, and says in `made` what it has begun to answer. */
async function aServer(t: TestContext): Promise<{
  url: string
  backpressure: Backpressure
  made: string[]
  open(): Socket
}> {
  const backpressure = createBackpressure()
  const app = await createApp({
    log: pino({ level: 'silent' }),
    publicUrl: () => 'http://x',
    schemas: {},
    backpressure,
  })
  const made: string[] = []
  const answers = { text: LARGE, bytes: Buffer.from(LARGE), small: 'small' }
  for (const [kind, answer] of Object.entries(answers)) {
    app.get(`/${kind}`, (request, reply) => {
      made.push(request.url)
      reply.type('text/plain').send(answer)
    })
  }
  await app.listen({ host: '127.0.0.1', port: 0 })
  const clients: Socket[] = []
  t.after(async () => {
    for (const client of clients) client.destroy()
    await app.close()
  })
  const { port } = app.server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    backpressure,
    made,
    open() {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      clients.push(socket)
      return socket
    },
  }
}

/** Waits until the only connection has an answer, of which nothing more goes out. */
async function stalled(backpressure: Backpressure, made: string[]): Promise<void> {
  let last = -1
  await until('nothing goes out', () => {
    const [socket] = [...backpressure.sockets()]
    if (!socket || made.length === 0 || socket.writableLength === 0) return false
    const sent = socket.bytesWritten - socket.writableLength
    const isStill = sent === last
    last = sent
    return isStill
  })
}
