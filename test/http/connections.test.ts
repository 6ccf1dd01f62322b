import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { type App, createApp } from '../../src/http/app.ts'
import { type Connections, createConnections } from '../../src/http/server/connections.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
/** More than the buffers of two sockets take. */
const LARGE = randomBytes(MIB).toString('hex').repeat(16)

test('a socket that takes nothing for a minute is closed, whatever it was to be sent', async (t) => {
  for (const kind of ['text', 'bytes']) {
    const { open, connections, made } = await aServer(t)
    const socket = open()
    socket.pause()
    socket.write(`GET /${kind} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await stalled(connections, made)
    endTimeOf(connections)
    await until('it is gone', () => [...connections.sockets()].length === 0)
    assert.equal(connections.closed().stalled, 1, kind)
  }
})

test('a connection that is only kept open does not count as one that takes nothing', async (t) => {
  const { open, connections } = await aServer(t)
  await opened(1, open, connections)
  endTimeOf(connections)
  await until('it is gone', () => [...connections.sockets()].length === 0)
  assert.equal(connections.closed().stalled, 0)
})

test('a client that waits for an answer for more than a minute gets it', async (t) => {
  const { open, connections, made, server, finish } = await aServer(t)
  const socket = open()
  let answer = ''
  socket.on('data', (part) => {
    answer += part
  })
  socket.write('GET /later HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it waits', () => made.length === 1)
  const timedOut = once(server, 'timeout')
  endTimeOf(connections)
  await timedOut
  finish('later')
  await until('it is answered', () => answer.endsWith('later'))
})

/** Of a minute, only its end is waited for. */
function endTimeOf(connections: Connections): void {
  for (const socket of connections.sockets()) {
    assert.equal(socket.timeout, 60_000)
    socket.setTimeout(1)
  }
}

test('a pipelined request is served when the answer before it is taken, and in its order', async (t) => {
  const { open, connections, made } = await aServer(t)
  const socket = open()
  socket.pause()
  const requests = 5
  for (let n = 0; n < requests; n++) socket.write(`GET /text?${n} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await stalled(connections, made)
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
  const { open, made, connections } = await aServer(t)
  const [patient, greedy] = [open(), open()]
  for (const socket of [patient, greedy]) socket.pause()
  const request = 'GET /text HTTP/1.1\r\nHost: x\r\n\r\n'
  patient.write(request.repeat(65))
  await until('both are there', () => [...connections.sockets()].length === 2 && made.length === 1)
  greedy.write(request.repeat(66))
  await until('one is gone', () => [...connections.sockets()].length === 1)
  assert.equal(patient.destroyed, false)
  assert.equal(made.length, 2, 'of the 66 one was begun')
})

test('requests that were answered do not count as waiting', async (t) => {
  const { open, made } = await aServer(t)
  const socket = open().resume()
  for (const answered of [65, 130]) {
    socket.write('GET /small HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(65))
    await until('all are answered', () => made.length === answered)
  }
})

test('a client that leaves takes what it has pipelined with it', async (t) => {
  const { open, connections, made } = await aServer(t)
  const socket = open()
  socket.pause()
  socket.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
  await stalled(connections, made)
  socket.destroy()
  await until('it is gone', () => [...connections.sockets()].length === 0)
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

test('of one network so many connections without a request are open, and the oldest of them makes room', async (t) => {
  const { open, connections, made } = await aServer(t, { maxIdle: { perNetwork: 3, inAll: 3 } })
  // One that leaves before its answer has no place among them, nor in all.
  const leaver = open()
  leaver.write('GET /later HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it waits', () => made.length === 1)
  leaver.destroy()
  await until('it has left', () => [...connections.sockets()].length === 0)
  const sockets = await opened(4, open, connections)
  await until('the oldest is gone', () => [...connections.sockets()].length === 3)
  await until('its client knows', () => sockets[0]?.destroyed === true)
  assert.equal(connections.closed().idle, 1)
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true, false, false, false],
  )
})

test('a connection counts as one without a request again once its answer is taken, and not before', async (t) => {
  const { open, connections, made } = await aServer(t, { maxIdle: { perNetwork: 1, inAll: 100 } })
  const [reader] = await opened(1, open, connections)
  assert.ok(reader)
  reader.pause()
  reader.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n')
  await stalled(connections, made)
  const [idle] = await opened(1, open, connections)
  assert.equal(connections.closed().idle, 0)
  reader.resume()
  await until(
    'it is taken, and what was idle for longer is closed',
    () => connections.closed().idle === 1,
  )
  await until('one is left', () => [...connections.sockets()].length === 1)
  assert.equal(idle?.destroyed || !reader.destroyed, true)
})

test('half a head that follows a whole request counts like the first one', async (t) => {
  const { open, connections, made } = await aServer(t, { maxIdle: { perNetwork: 2, inAll: 100 } })
  for (let n = 1; n <= 5; n++) {
    const socket = open()
    socket.resume()
    socket.write('GET /small HTTP/1.1\r\nHost: x\r\n\r\nGET /small HTTP/1.1\r\nX-Half: ')
    await until('it is answered', () => made.length === n)
  }
  await until('two are left', () => [...connections.sockets()].length === 2)
  assert.equal(connections.closed().idle, 3)
})

test('above the total the oldest of the largest network is closed, and proxies and this machine have that bound alone', async (t) => {
  const peers = ['10.0.0.0', '10.0.0.0', '10.0.0.0', '192.0.2.0', null, null, null, null]
  const { open, connections } = await aServer(t, {
    maxIdle: { perNetwork: 3, inAll: 7 },
    networkOf: () => peers.shift() ?? null,
  })
  const sockets = await opened(8, open, connections)
  await until('one is gone', () => [...connections.sockets()].length === 7)
  await until('its client knows', () => sockets[4]?.destroyed === true)
  assert.equal(sockets.filter(({ destroyed }) => destroyed).length, 1)
})

test('a stop closes what says nothing at once, and what is under way after ten seconds', {
  timeout: 60_000,
}, async (t) => {
  const { app, open, connections, made } = await aServer(t)
  const [silent, asking] = await opened(2, open, connections)
  assert.ok(silent && asking)
  asking.write('GET /later HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it is asked', () => made.length === 1)
  const [silentClosed, askingClosed] = [once(silent, 'close'), once(asking, 'close')]
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const closed = app.close()
  await silentClosed
  t.mock.timers.tick(9_999)
  assert.equal(asking.destroyed, false)
  t.mock.timers.tick(1)
  await Promise.all([askingClosed, closed])
})

/** Opens connections one after the other, each when the server knows the one before. */
async function opened(
  count: number,
  open: () => Socket,
  connections: Connections,
): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) {
    const known = new Set(connections.sockets())
    sockets.push(open().resume())
    await until('the server knows it', () =>
      [...connections.sockets()].some((socket) => !known.has(socket)),
    )
  }
  return sockets
}

/** A server that answers a lot, and says in `made` what it has begun to answer. */
async function aServer(
  t: TestContext,
  options: Parameters<typeof createConnections>[0] = { networkOf: () => null },
): Promise<{
  url: string
  app: App
  connections: Connections
  made: string[]
  server: Server
  /** Answers `/later`. */
  finish(answer: string): void
  open(): Socket
}> {
  const connections = createConnections({ networkOf: () => '192.0.2.0', ...options })
  const app = await createApp({
    log: pino({ level: 'silent' }),
    connections,
  })
  const made: string[] = []
  const answers = { text: LARGE, bytes: Buffer.from(LARGE), small: 'small' }
  for (const [kind, answer] of Object.entries(answers)) {
    app.get(`/${kind}`, (request, reply) => {
      made.push(request.url)
      reply.type('text/plain').send(answer)
    })
  }
  const later = Promise.withResolvers<string>()
  app.get('/later', async (request) => {
    made.push(request.url)
    return later.promise
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const clients: Socket[] = []
  t.after(async () => {
    for (const client of clients) client.destroy()
    await app.close()
  })
  const { port } = app.server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    app,
    connections,
    made,
    server: app.server,
    finish: later.resolve,
    open() {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      clients.push(socket)
      return socket
    },
  }
}

/** Waits until the only connection has an answer, of which nothing more goes out. */
async function stalled(connections: Connections, made: string[]): Promise<void> {
  let last = -1
  await until('nothing goes out', () => {
    const [socket] = [...connections.sockets()]
    if (!socket || made.length === 0 || socket.writableLength === 0) return false
    const sent = socket.bytesWritten - socket.writableLength
    const isStill = sent === last
    last = sent
    return isStill
  })
}
