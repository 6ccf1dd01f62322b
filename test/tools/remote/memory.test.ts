/** What requests to /mcp may hold in memory, and that a refusal for it spends nothing. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { REQUEST_BYTES } from '../../../src/http/memory.ts'
import { MAX_CIPHERTEXT_BYTES } from '../../../src/tools/buying.ts'
import { TOKEN_META } from '../../../src/tools/tool.ts'
import { anInbox } from '../../support/catch.ts'
import type { After } from '../../support/folder.ts'
import { connect, message, post, purchaseIn, readIn, refusalIn } from '../../support/mcp.ts'
import { scrape } from '../../support/scrape.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { shareServer } from '../../support/shared-server.ts'
import { until } from '../../support/until.ts'
import { aWhisper, read } from '../../support/whisper.ts'

const KIB = 1024
/** The largest message. */
const PLAIN = 64 * KIB
/** What the message of a wait may cost. */
const WAIT = 32 * KIB
/** Below the 64 requests that one network may have under way. */
const MANY = 60

/** A message with spaces up to this length. */
const padded = (body: string, bytes: number): string => body + ' '.repeat(bytes - body.length)

const callOf = (name: string, given: object, token: string): string =>
  message('tools/call', { name, arguments: given, _meta: { [TOKEN_META]: token } })

const waitOn = ({ publicId, ownerToken }: { publicId: string; ownerToken: string }): string =>
  callOf('wait_for_webhook', { publicId, after: 0, timeoutSeconds: 600 }, ownerToken)

const HEAD =
  'POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'

async function aSocket(t: After, { url }: TestServer): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connectSocket(Number(port), hostname)
  t.after(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

const waits = async (server: TestServer): Promise<number> => {
  const { series } = await scrape(server)
  return series.get('mayfly_open_streams{route="/api/catch/:publicId/events"}') ?? 0
}

const start = shareServer()

test('a ciphertext of 32 KiB is sold and answered whole, and one byte more is refused before its read is spent', async (t) => {
  const server = await start()
  const agent = await connect(t, server.url)
  const body = randomBytes(MAX_CIPHERTEXT_BYTES)
  const asked = { planId: 'spark', ciphertextBase64: body.toString('base64') }
  assert.ok(purchaseIn(await agent.call('send_whisper', asked)))
  const largest = await aWhisper(server, { body, readLimit: 1 })
  const given = { publicId: largest.publicId }
  const answered = await agent.call('read_whisper', given, { token: largest.readToken })
  assert.deepEqual(readIn(answered), {
    ciphertextBase64: body.toString('base64'),
    ciphertextBytes: 32 * KIB,
  })
  const more = randomBytes(MAX_CIPHERTEXT_BYTES + 1)
  const longer = await aWhisper(server, { body: more, readLimit: 1 })
  const { publicId, readToken: token } = longer
  const said = refusalIn(await agent.call('read_whisper', { publicId }, { token }))
  assert.match(said, /^ciphertext too large\..*at most 32768 bytes.*No read was spent\./)
  assert.ok(said.includes(`over HTTP from ${server.url}/w/${publicId}`), said)
  assert.ok(!said.includes(token))
  assert.deepEqual((await read(server, longer)).body, more)
})

suite('the memory of messages to /mcp', () => {
  test('a message has 64 KiB at most, and says so', async (t) => {
    const server = await startServer(t)
    assert.equal((await post(server.url, padded(message('ping'), PLAIN))).status, 200)
    const { status, json } = await post(server.url, padded(message('ping'), PLAIN + 1))
    assert.equal(status, 400)
    const { message: said } = json.error as { message: string }
    assert.match(said, /^request too large\. Expected: at most 65536 bytes\./)
  })

  test('so many waits with the heaviest messages that a wait may have leave room for the other calls of their network', async (t) => {
    const server = await startServer(t, { MAYFLY_METRICS_PORT: '0' })
    const inbox = await anInbox(server)
    const { publicId, ownerToken } = inbox
    const heavy = (signs: number): string =>
      message('tools/call', {
        name: 'wait_for_webhook',
        arguments: { publicId, after: 0, timeoutSeconds: 600 },
        _meta: { [TOKEN_META]: ownerToken, unknown: Array(signs).fill(0) },
      })
    for (const tooHeavy of [heavy(1_900), padded(waitOn(inbox), WAIT)]) {
      const { status, text } = await post(server.url, tooHeavy)
      assert.equal(status, 400)
      assert.match(text, /at most 32768 bytes for a call that waits/)
    }
    const body = heavy(280)
    // In two parts and without a length, for which the most memory is reserved.
    const [first, second] = [body.slice(0, 300), body.slice(300)]
    const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
    const sockets = await Promise.all(Array.from({ length: MANY }, () => aSocket(t, server)))
    for (const socket of sockets) {
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunk(first)}`)
    }
    assert.equal((await post(server.url, message('ping'))).status, 200)
    for (const socket of sockets) socket.write(`${chunk(second)}0\r\n\r\n`)
    await until('all wait', async () => (await waits(server)) === MANY)
    const signs = body.replaceAll(/"[^"]*"/g, '').replaceAll(/[^{}[\],:]/g, '').length
    const { series } = await scrape(server)
    const held = series.get('mayfly_reserved_bytes{kind="message"}')
    assert.equal(held, MANY * (REQUEST_BYTES + body.length + 100 * signs))
    assert.equal((await post(server.url, padded(message('ping'), PLAIN))).status, 200)
  })
})
