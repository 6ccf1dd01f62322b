import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { Type } from 'typebox'
import { createApp } from '../../src/http/app.ts'
import { createClientAddress } from '../../src/http/client-address.ts'
import { createLimits } from '../../src/http/limits.ts'
import { mountPaidRoute, type Paying } from '../../src/http/paid.ts'
import { createUploads } from '../../src/http/uploads.ts'

const LIMITS = { perNetwork: 10, inAll: 15 }

test('a network holds so many bytes, whatever it sends them in', () => {
  const uploads = createUploads(LIMITS)
  const [one, two] = [uploads.begin('a'), uploads.begin('a')]
  assert.deepEqual([one.take(6), two.take(4), two.take(1)], [true, true, false])
})

test('all networks together hold so many bytes', () => {
  const uploads = createUploads(LIMITS)
  const [one, two] = [uploads.begin('a'), uploads.begin('b')]
  assert.deepEqual([one.take(10), two.take(5)], [true, true])
  assert.equal(uploads.begin('c').take(1), false)
})

test('what finds no room gives up what it had, so that others can finish', () => {
  const uploads = createUploads(LIMITS)
  const [one, two] = [uploads.begin('a'), uploads.begin('a')]
  assert.deepEqual([one.take(5), two.take(5), two.take(1), one.take(5)], [true, true, false, true])
  assert.equal(two.take(0), false)
})

test('what ends gives all of its bytes back, once, and takes none any more', () => {
  const uploads = createUploads(LIMITS)
  const one = uploads.begin('a')
  assert.ok(one.take(4) && one.take(6))
  one.end()
  one.end()
  assert.equal(one.take(1), false)
  const two = uploads.begin('a')
  assert.deepEqual([two.take(10), two.take(1)], [true, false])
})

test('a body that does not end holds its bytes until its sender leaves', async (t) => {
  const seen: { taken: () => void; ended: () => void } = { taken: () => {}, ended: () => {} }
  const { port, buy } = await aRoute(t, seen)
  assert.match(await buy('x'.repeat(60)), /^HTTP\/1\.1 400 .*\{"error":"invalid plan"\}$/s)
  const taken = new Promise<void>((resolve) => {
    seen.taken = resolve
  })
  const slow = connect(port, '127.0.0.1')
  slow.write(head(80) + 'x'.repeat(60))
  await taken
  const refused = await buy('x'.repeat(60))
  assert.match(refused, /^HTTP\/1\.1 429 .*\{"error":"rate limited"\}$/s)
  assert.match(refused, /\r\nretry-after: [1-9]\d*\r\n/)
  const ended = new Promise<void>((resolve) => {
    seen.ended = resolve
  })
  slow.destroy()
  await ended
  assert.match(await buy('x'.repeat(60)), /^HTTP\/1\.1 400 /)
})

const head = (length: number): string =>
  `POST /buy HTTP/1.1\r\nHost: mayfly\r\nConnection: close\r\nIdempotency-Key: ${randomUUID()}\r\nContent-Type: application/octet-stream\r\nContent-Length: ${length}\r\n\r\n`

/** A paid route whose bodies may hold 100 bytes, and which has nothing to sell. */
async function aRoute(t: TestContext, seen: { taken: () => void; ended: () => void }) {
  const uploads = createUploads({ perNetwork: 100, inAll: 1000 })
  const { clientAddress } = createClientAddress([])
  const log = pino({ level: 'silent' })
  const app = await createApp({ log, publicUrl: () => 'http://mayfly', schemas: {} })
  t.after(() => app.close())
  const paying = {
    orders: { find: async () => null },
    flows: {},
    clientAddress,
    limits: createLimits({}, clientAddress),
    uploads: {
      begin(network: string) {
        const upload = uploads.begin(network)
        return {
          take(bytes: number) {
            const hasRoom = upload.take(bytes)
            seen.taken()
            return hasRoom
          },
          end() {
            upload.end()
            seen.ended()
          },
        }
      },
    },
    // Only what a route without a plan on sale asks for.
  } as unknown as Paying
  mountPaidRoute(app, paying, {
    product: 'whisper',
    path: '/buy',
    summary: '',
    contentType: 'application/octet-stream',
    maxBodyBytes: 1000,
    bodySchema: Type.String(),
    headerSchemas: {},
    resourceSchema: Type.Object({}),
    parse: () => ({ planId: 'spark', terms: null }),
    plan: () => null,
    memo: () => '',
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    async buy(body: string): Promise<string> {
      const socket = connect(port, '127.0.0.1')
      let answer = ''
      socket.setEncoding('latin1').on('data', (text: string) => {
        answer += text
      })
      socket.write(head(body.length) + body)
      await once(socket, 'close')
      return answer
    },
  }
}
