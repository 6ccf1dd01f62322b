/** What a stored request takes of its inbox's storage, and what it takes of the disk. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { anInbox, BARE_BYTES, type Bare, eventsOf, sendBare } from '../support/catch.ts'
import type { TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'

/** What a row holds besides the request: hash, address, times, names of states, one list. */
const ROW_BYTES = 300

const storedBytes = async ({ mayfly }: TestServer, inbox: CatchCapability): Promise<number> =>
  (await mayfly.catch(inbox).status()).storedBytes

/** All that the rows of an inbox's events hold, in bytes. */
async function rowBytes(server: TestServer, { publicId }: CatchCapability): Promise<number> {
  const rows = await query(
    server,
    'select * from catch_event where inbox = (select number from catch_inbox where public_id = $1)',
    publicId,
  )
  let bytes = 0
  for (const value of rows.flatMap((row) => Object.values(row))) {
    if (value instanceof Uint8Array) bytes += value.length
    else bytes += typeof value === 'string' ? Buffer.byteLength(value) : 8
  }
  return bytes
}

suite('the storage of an inbox', () => {
  const theServer = shareServer()

  test('storedBytes counts body, path, query, and names and values of headers, as they were sent', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    assert.equal((await sendBare(server, inbox)).status, 204)
    const nothing = BARE_BYTES + '0'.length
    assert.equal(await storedBytes(server, inbox), nothing)
    const sent = {
      target: '/a%20b?q=%C3%A9',
      headers: ['X-One: "\\\t\xff', 'X-Two:'],
      body: '\x01'.repeat(50),
    }
    assert.equal((await sendBare(server, inbox, sent)).status, 204)
    const more = '/a%20b'.length + 'q=%C3%A9'.length + 'X-One"\\\t\xff'.length + 'X-Two'.length + 50
    assert.equal(await storedBytes(server, inbox), 2 * BARE_BYTES + '0'.length + '50'.length + more)
  })

  test('a header that is not kept is not counted', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const secret = `X-Api-Key: ${tokenOf('catch_owner', randomBytes(32))}`
    assert.equal((await sendBare(server, inbox, { headers: [secret] })).status, 204)
    assert.equal(await storedBytes(server, inbox), BARE_BYTES + 1)
  })

  test('a request of 256 header lines is kept, and one of 257 is too large and leaves nothing', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const empty = (lines: number): string[] => Array.from({ length: lines - 3 }, () => 'x:')
    const bomb = await sendBare(server, inbox, { headers: empty(257), body: 'body' })
    assert.deepEqual([bomb.status, bomb.body], [400, '{"error":"request too large"}'])
    const larger = await sendBare(server, inbox, { headers: empty(7_400) })
    assert.deepEqual([larger.status, larger.body], [400, '{"error":"request too large"}'])
    const { acceptedRequestCount, storedBytes } = await server.mayfly.catch(inbox).status()
    assert.deepEqual([acceptedRequestCount, storedBytes], [0, 0])
    assert.equal((await sendBare(server, inbox, { headers: empty(256) })).status, 204)
    assert.equal((await eventsOf(server, inbox))[0]?.headers.length, 256)
  })

  const BOMBS: [what: string, sent: Bare][] = [
    ['empty header lines', { headers: Array.from({ length: 253 }, () => 'x:') }],
    ['control characters', { headers: [`X: a${'\x80'.repeat(30_000)}b`] }],
    ['bytes that are no ASCII', { headers: [`X: ${'\xff'.repeat(30_000)}`] }],
    ['quotes, backslashes and tabs', { headers: [`X: ${'"\\\t'.repeat(10_000)}x`] }],
    ['a long content type', { headers: [`Content-Type: ${'x/y;'.repeat(7_500)}`] }],
    ['a long path', { target: `/${'"'.repeat(30_000)}` }],
    ['a long query', { target: `?${'"'.repeat(30_000)}` }],
  ]

  test('whatever a request is made of, it takes about as much of the disk as of the plan', async () => {
    const server = await theServer()
    for (const [what, sent] of BOMBS) {
      const inbox = await anInbox(server)
      assert.equal((await sendBare(server, inbox, sent)).status, 204, what)
      const [event] = await eventsOf(server, inbox)
      const header = sent.headers?.at(-1)?.replace(/^[\w-]+:\s*/, '')
      if (header !== undefined) assert.equal(event?.headers.at(-1)?.value, header, what)
      const counted = await storedBytes(server, inbox)
      const lines = event?.headers.length ?? 0
      // A colon and a line feed for each header line.
      const most = counted + 2 * lines + ROW_BYTES
      const held = await rowBytes(server, inbox)
      assert.ok(held <= most, `${what}: ${held} bytes held, ${counted} counted, ${lines} lines`)
    }
  })

  test('a content type of any length is shown, and filtered by its media type', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const long = `text/plain; x="${'y'.repeat(20_000)}"`
    for (const type of [long, 'text/plain', '']) {
      await sendBare(server, inbox, { headers: [`Content-Type: ${type}`] })
    }
    await sendBare(server, inbox, { headers: [`X: ${'y'.repeat(300)}`] })
    const shown = (await eventsOf(server, inbox)).map(({ contentType }) => contentType)
    assert.deepEqual(shown, [null, '', 'text/plain', long])
    const { events } = await server.mayfly.catch(inbox).page({ contentType: 'text/plain' })
    assert.deepEqual(
      events.map(({ contentType }) => contentType),
      ['text/plain', long],
    )
  })
})
