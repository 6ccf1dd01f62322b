/** What requests to /mcp may hold in memory, and that a refusal for it spends nothing. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import type { WhisperCapability } from '../../../src/client/index.ts'
import { MAX_CIPHERTEXT_BYTES } from '../../../src/tools/buying.ts'
import { TOKEN_META } from '../../../src/tools/tool.ts'
import { anInbox } from '../../support/catch.ts'
import type { After } from '../../support/folder.ts'
import { connect, message, post, purchaseIn, readIn, refusalIn } from '../../support/mcp.ts'
import { scrape } from '../../support/scrape.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { shareServer } from '../../support/shared-server.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { aWhisper, read } from '../../support/whisper.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** The largest message without a ciphertext. */
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

/** A request with a Content-Length. */
const whole = (body: string): string =>
  `${HEAD}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

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

const readsLeft = async (server: TestServer, { publicId }: WhisperCapability): Promise<number> => {
  const rows = await query(server, 'select public_id, reads_left from whisper')
  return Number(rows.find(({ public_id }) => public_id === publicId)?.reads_left ?? 0)
}

suite('a ciphertext that a call reads', () => {
  const start = shareServer()

  test('a ciphertext of 1 MiB is answered whole, and one byte more is refused before its read is spent', async (t) => {
    const server = await start()
    const agent = await connect(t, server.url)
    const body = randomBytes(MAX_CIPHERTEXT_BYTES)
    const largest = await aWhisper(server, { plan: 'standard', body, readLimit: 1 })
    const given = { publicId: largest.publicId }
    const answered = await agent.call('read_whisper', given, { token: largest.readToken })
    assert.deepEqual(readIn(answered), {
      ciphertextBase64: body.toString('base64'),
      ciphertextBytes: MIB,
    })
    const more = randomBytes(MAX_CIPHERTEXT_BYTES + 1)
    const longer = await aWhisper(server, { plan: 'long', body: more, readLimit: 1 })
    const { publicId, readToken: token } = longer
    const said = refusalIn(await agent.call('read_whisper', { publicId }, { token }))
    assert.match(said, /^ciphertext too large\..*at most 1048576 bytes.*No read was spent\./)
    assert.ok(said.includes(`over HTTP from ${server.url}/w/${publicId}`), said)
    assert.ok(!said.includes(token))
    assert.deepEqual((await read(server, longer)).body, more)
  })
})

suite('the memory of answers at /mcp', () => {
  /** Asks for one ciphertext after the other and takes nothing, until what is on its way fills the sockets. */
  async function stall(t: After, server: TestServer, whisper: WhisperCapability) {
    const socket = await aSocket(t, server)
    const { publicId, readToken } = whisper
    socket.pause()
    await until('it takes nothing more', async () => {
      const before = await readsLeft(server, whisper)
      // All are refused while another reader has the room that they need for a moment.
      if (before === 42) {
        socket.write(whole(callOf('read_whisper', { publicId }, readToken)).repeat(10))
      }
      for (let i = 0; i < 10; i++) await post(server.url, message('ping'))
      return before < 42 && (await readsLeft(server, whisper)) === before
    })
    return socket
  }

  test('an answer that is not taken holds four times its ciphertext; one for which no room is left is refused before its read is spent', async (t) => {
    const server = await startServer(t)
    const agent = await connect(t, server.url)
    const aCiphertext = (bytes: number) =>
      aWhisper(server, { plan: 'standard', body: randomBytes(bytes), readLimit: 42 })
    const [one, other] = [await aCiphertext(MIB / 2), await aCiphertext(MIB / 2)]
    const [large, short] = [await aCiphertext(MIB), await aCiphertext(64 * KIB)]
    const call = ({ publicId, readToken: token }: WhisperCapability) =>
      agent.call('read_whisper', { publicId }, { token })

    const first = await stall(t, server, one)
    const second = await stall(t, server, other)
    // Half of the 8 MiB of this network: an answer of four more does not fit beside the two requests.
    const said = refusalIn(await call(large))
    assert.match(said, /^rate limited\..*No read was spent\. Retry after 10 seconds\.$/)
    assert.equal(await readsLeft(server, large), 42)
    assert.equal(readIn(await call(short)).ciphertextBytes, 64 * KIB)
    second.destroy()
    await until('its memory is free', async () => (await call(large)).isError !== true)
    first.destroy()
  })
})

suite('the memory of messages to /mcp', () => {
  test('a message has 64 KiB at most, and says so; a ciphertext may make it longer', async (t) => {
    const server = await startServer(t)
    assert.equal((await post(server.url, padded(message('ping'), PLAIN))).status, 200)
    for (const body of [
      message('ping'),
      message('send_whisper', { arguments: {} }),
      '"send_whisper"',
      '7',
    ]) {
      const { status, json } = await post(server.url, padded(body, PLAIN + 1))
      assert.equal(status, 400)
      const { message } = json.error as { message: string }
      assert.match(message, /^request too large\. Expected: at most 65536 bytes beside the cipher/)
    }
    const agent = await connect(t, server.url)
    const ciphertextBase64 = randomBytes(MIB).toString('base64')
    assert.ok(
      purchaseIn(await agent.call('send_whisper', { planId: 'standard', ciphertextBase64 })),
    )
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
    const agent = await connect(t, server.url)
    const ciphertextBase64 = randomBytes(MIB).toString('base64')
    assert.ok(
      purchaseIn(await agent.call('send_whisper', { planId: 'standard', ciphertextBase64 })),
    )
  })
})
