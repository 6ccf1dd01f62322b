import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { pino } from 'pino'
import { createApp } from '../../src/http/app.ts'
import { readBody } from '../../src/http/body.ts'
import { Type } from '../../src/lib/json-schema.ts'

const KIB = 1024

/** A request whose body comes in pieces of this many bytes. */
function aRequest(body: Buffer, piece: number, headers: Record<string, string>): IncomingMessage {
  const pieces = Array.from({ length: Math.ceil(body.length / piece) }, (_, i) =>
    body.subarray(i * piece, (i + 1) * piece),
  )
  // Not as `Readable.from` does it, one piece at a time: what has come is there at once.
  const request = new Readable({ read() {}, highWaterMark: body.length + 1 })
  for (const part of pieces) request.push(part)
  request.push(null)
  return Object.assign(request, { headers }) as unknown as IncomingMessage
}

for (const piece of [1, 7, 1_000, 64 * KIB]) {
  for (const isAnnounced of [true, false]) {
    test(`a body in pieces of ${piece} bytes holds what it counts, ${isAnnounced ? 'announced' : 'in chunks'}`, async () => {
      const sent = Buffer.from(Array.from({ length: 100 * KIB }, (_, i) => i % 251))
      let counted = 0
      const headers: Record<string, string> = isAnnounced
        ? { 'content-length': String(sent.length) }
        : {}
      const body = await readBody(aRequest(sent, piece, headers), 1024 * KIB, {
        reserve(bytes) {
          counted += bytes
          return true
        },
      })
      assert.deepEqual(body, sent)
      assert.equal(body.buffer.byteLength, counted)
      assert.ok(counted <= (isAnnounced ? 1 : 2) * sent.length, `${counted} bytes counted`)
    })
  }
}

test('a body that finds no room is refused at once, and nothing of it is held', async () => {
  const request = new Readable({ read() {} })
  const reading = readBody(
    Object.assign(request, { headers: {} }) as unknown as IncomingMessage,
    KIB,
    { reserve: () => false },
  )
  request.push(Buffer.alloc(10))
  await assert.rejects(reading, {
    phrase: 'rate limited',
    headers: { 'retry-after': '10' },
  })
})

/** A request that has arrived whole, in two pieces. */
function arrived(body: Buffer): IncomingMessage {
  const request = aRequest(body, Math.ceil(body.length / 2) || 1, {})
  return Object.assign(request, { complete: true })
}

test('a body that came together with the headers is reserved, and read without waiting', async () => {
  for (const sent of [Buffer.from('{"id":1}'), Buffer.alloc(0)]) {
    const request = arrived(sent)
    const reserved: number[] = []
    const body = await readBody(request, KIB, {
      reserve: (bytes) => reserved.push(bytes) > 0,
    })
    assert.deepEqual(body, sent)
    assert.deepEqual(reserved, [sent.length])
    assert.equal(request.listenerCount('data'), 0)
  }
})

test('a body that came together with the headers is refused above the limit, and without memory', async () => {
  const phrase = (body: Promise<Buffer>): Promise<unknown> =>
    body.then(
      () => 'accepted',
      (error: { phrase?: string }) => error.phrase,
    )
  assert.equal(await phrase(readBody(arrived(Buffer.alloc(KIB + 1)), KIB)), 'request too large')
  const full = readBody(arrived(Buffer.alloc(KIB)), KIB, { reserve: () => false })
  assert.equal(await phrase(full), 'rate limited')
})

test('a body that is no JSON, or has a member twice, never reaches a route', async () => {
  const app = await createApp({
    log: pino({ level: 'silent' }),
  })
  app.post('/', { schema: { body: Type.Object({}) } }, async ({ body }) => body)
  const post = async (payload: string | Buffer): Promise<string> =>
    (
      await app.inject({
        method: 'POST',
        url: '/',
        headers: { 'content-type': 'application/json' },
        payload,
      })
    ).body
  const bad = ['', ' ', '{', '{"name":"x"', "{'name':'x'}", 'name=x', '{"name":"\n"}', '{}x', 'NaN']
  const notUtf8 = Buffer.from('{"name":"\xff"}', 'latin1')
  for (const text of [...bad, '{"name":1,"name":1}', notUtf8]) {
    assert.deepEqual(JSON.parse(await post(text)), {
      error: 'invalid request body',
      expected: 'JSON with each member once, and at most 2000 of { } [ ] , :',
    })
  }
  assert.equal(await post('{"name":1}'), '{"name":1}')
})
