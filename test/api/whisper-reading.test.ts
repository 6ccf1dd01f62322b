import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { tokenOf } from '../../src/lib/ids.ts'
import { NOT_FOUND } from '../support/answer.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import {
  A_BODY,
  assertNoRoom,
  aWhisper,
  iso,
  mayflyError,
  purchaseWhisper,
  read,
  send,
  short,
} from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

suite('reading a whisper', () => {
  const theServer = shareServer()

  test('the exact bytes are answered as a download that nobody sniffs or keeps', async () => {
    const server = await theServer()
    const body = Buffer.concat([Buffer.from('<script>alert(1)</script>\0\r\n'), randomBytes(9_000)])
    const whisper = await aWhisper(server, { body })
    const answer = await read(server, whisper)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, body)
    const { headers } = answer
    assert.equal(headers['content-type'], 'application/octet-stream')
    assert.equal(headers['content-length'], String(body.length))
    assert.equal(headers['content-disposition'], 'attachment')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['access-control-allow-origin'], '*')
  })

  test('a reader that takes fewer bytes is refused before a read is spent, and told how many there are', async () => {
    const server = await theServer()
    const whisper = await aWhisper(server, { body: randomBytes(1_000), readLimit: 1 })
    for (const most of ['999', '0', '', '-1', '1e9', '1000.0', '9'.repeat(16), ['1000', '1000']]) {
      const answer = await read(server, whisper, { 'x-whisper-max-bytes': most })
      assert.equal(answer.status, 400, String(most))
      assert.deepEqual(JSON.parse(answer.body.toString('utf8')), {
        error: 'ciphertext too large',
        field: 'X-Whisper-Max-Bytes',
        expected: 'at least 1000, the length of the ciphertext',
      })
    }
    const stranger = { ...whisper, readToken: tokenOf('whisper_read', randomBytes(32)) }
    const refused = await read(server, stranger, { 'x-whisper-max-bytes': '999' })
    assert.deepEqual(short(refused), NOT_FOUND, 'its length is for its readers')
    assert.equal((await read(server, whisper, { 'x-whisper-max-bytes': '1000' })).status, 200)
  })

  // test/api/every-route.test.ts has every form of a wrong token.
  test('a wrong way in looks the same before the reveal time, and spends nothing', async () => {
    const server = await theServer()
    const whisper = await aWhisper(server, { readLimit: 1 })
    const scheduled = await aWhisper(server, { revealAt: iso(server, MINUTE) })
    const { publicId, readToken } = whisper
    const ofAnother = { publicId, readToken: scheduled.readToken }
    for (const answer of [
      await read(server, { ...scheduled, readToken }),
      await read(server, { ...scheduled, readToken: null }),
      await read(server, ofAnother),
      await send(`${server.url}/w/${publicId}?token=${readToken}`, {}),
    ]) {
      assert.deepEqual(short(answer), NOT_FOUND)
      assert.equal(answer.headers['www-authenticate'], undefined)
    }
    assert.equal((await read(server, whisper)).status, 200)
  })

  test('reading sends the whole, also to a client that asks for a range or says what it has', async () => {
    const server = await theServer()
    const whisper = await aWhisper(server)
    const answer = await read(server, whisper, { range: 'bytes=0-3', 'if-none-match': '*' })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, A_BODY)
  })

  test('reading before the reveal time says when, rounded up, and spends nothing', async (t) => {
    const server = await startServer(t)
    const revealAt = iso(server, 10 * MINUTE)
    const key = randomUUID()
    const whisper = await aWhisper(server, { key, readLimit: 1, revealAt })
    const before = server.now()
    const answer = await read(server, whisper)
    const after = server.now()
    assert.equal(answer.status, 425)
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.deepEqual(JSON.parse(answer.text), { error: 'not revealed', revealAt })
    const seconds = Number(answer.headers['retry-after'])
    const due = Date.parse(revealAt)
    assert.ok(Number.isInteger(seconds))
    assert.ok(seconds * SECOND >= due - after && (seconds - 1) * SECOND < due - before)
    // It was no use of the token yet: the buyer may still ask again.
    assert.equal((await purchaseWhisper(server, { key, readLimit: 1, revealAt })).status, 200)
    await assert.rejects(
      server.mayfly.fetchWhisper(aCode(whisper)),
      mayflyError('not revealed', 425),
    )
    server.clock.advance(seconds * SECOND)
    assert.deepEqual((await read(server, whisper)).body, A_BODY)
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
    assert.deepEqual(short(await purchaseWhisper(server, { key, readLimit: 1, revealAt })), {
      status: 404,
      text: '{"error":"already delivered"}',
    })
  })

  test('an expired whisper is gone at once, revealed or not', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server)
    const scheduled = await aWhisper(server, { revealAt: iso(server, DAY - MINUTE) })
    assert.equal((await read(server, whisper)).status, 200)
    // A little more, since the clock of the service may be a moment behind.
    server.clock.advance(Date.parse(scheduled.expiresAt) - server.now() + SECOND)
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
    assert.deepEqual(short(await read(server, scheduled)), NOT_FOUND)
  })

  test('reading is limited for each whisper, and a refused read spends nothing', async (t) => {
    const server = await startServer(t, {
      MAYFLY_RATE_LIMITS: 'on',
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const whisper = await aWhisper(server, { plan: 'long', readLimit: 32 })
    const stranger = { ...whisper, readToken: tokenOf('whisper_read', new Uint8Array(32)) }
    const guesses = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        read(server, stranger, { 'x-forwarded-for': `192.0.2.${i}` }),
      ),
    )
    assert.ok(guesses.every(({ status }) => status === 404))
    const answers = await Promise.all(Array.from({ length: 40 }, () => read(server, whisper)))
    const refused = answers.filter(({ status }) => status !== 200)
    assert.equal(answers.length - refused.length, 30)
    for (const answer of refused) assertNoRoom(answer)
    assert.equal(await readsLeft(server), 2)
    const other = await aWhisper(server)
    assert.equal((await read(server, other)).status, 200)
  })
})

function aCode({ publicId, readToken }: { publicId: string; readToken: string }): string {
  return `mayfly-whisper:1:${publicId}:${readToken}:${'A'.repeat(43)}`
}

async function readsLeft(server: TestServer): Promise<unknown> {
  return (await query(server, 'select reads_left from whisper'))[0]?.reads_left
}
