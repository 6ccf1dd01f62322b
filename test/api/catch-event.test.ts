import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { NOT_FOUND } from '../support/answer.ts'
import {
  anInbox,
  aSmallServer,
  ask,
  askDelete,
  BARE_BYTES,
  eventsOf,
  send,
  sendBare,
  UNAVAILABLE,
} from '../support/catch.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { sendMany } from './catch-stream.ts'

const DAY = 24 * 60 * 60 * 1000
const KIB = 1024

suite('an event of an inbox', () => {
  const theServer = shareServer()

  test('deleting an event frees its bytes and not its count, and leaves the others', async (t) => {
    const server = await aSmallServer(t)
    const inbox = await anInbox(server)
    const owner = server.mayfly.catch(inbox)
    for (const body of ['x'.repeat(60), 'y'.repeat(40)]) {
      assert.equal((await sendBare(server, inbox, { body })).status, 204)
    }
    const [newest, oldest] = (await owner.page()).events
    assert.deepEqual(await send(server, inbox, { method: 'POST', body: 'z' }), UNAVAILABLE)

    await owner.deleteEvent(oldest?.id ?? '')
    const status = await owner.status()
    assert.deepEqual(
      [status.storedBytes, status.acceptedRequestCount],
      [BARE_BYTES + '40'.length + 40, 2],
    )
    const { events, latestSequence } = await owner.page()
    assert.deepEqual(events, [newest])
    assert.equal(latestSequence, 2)
    assert.equal((await sendBare(server, inbox, { body: 'z'.repeat(60) })).status, 204)
    const [third] = (await owner.page()).events
    assert.equal(third?.sequence, 3, 'a sequence is never given twice')
  })

  test('an event is read by its id as the list shows it, and its body byte for byte', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const bodies = [
      Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
      Buffer.from(randomBytes(64 * KIB)),
      Buffer.alloc(0),
      Buffer.from('<script>alert(1)</script>'),
      Buffer.from('\ufeffé'),
    ]
    for (const body of bodies) {
      const headers = { 'content-type': 'text/html' }
      await fetch(`${server.url}/c/${inbox.publicId}/x?y`, { method: 'POST', body, headers })
    }
    const { events } = await server.mayfly.catch(inbox).page()
    for (const event of events) {
      const path = `/api/catch/${inbox.publicId}/events/${event.id}`
      const one = await ask(server, path, inbox.ownerToken)
      assert.deepEqual([one.status, JSON.parse(one.text)], [200, event])
      const answer = await fetch(`${server.url}${path}/body`, {
        headers: { authorization: `Bearer ${inbox.ownerToken}` },
      })
      assert.equal(answer.status, 200)
      const body = Buffer.from(await answer.arrayBuffer())
      assert.deepEqual(body, bodies[event.sequence - 1])
      assert.equal(createHash('sha256').update(body).digest('hex'), event.bodySha256)
      const headers = Object.fromEntries(answer.headers)
      delete headers.date
      assert.deepEqual(headers, {
        'access-control-allow-origin': '*',
        'access-control-expose-headers': headers['access-control-expose-headers'],
        'cache-control': 'no-store',
        connection: 'keep-alive',
        'content-disposition': `attachment; filename="${event.id}.bin"`,
        'content-length': String(body.length),
        'content-security-policy': "default-src 'none'; sandbox",
        'content-type': 'application/octet-stream',
        'cross-origin-resource-policy': 'cross-origin',
        'keep-alive': 'timeout=72',
        'x-content-type-options': 'nosniff',
      })
    }
  })

  for (const [method, suffix] of [
    ['GET', ''],
    ['GET', '/body'],
    ['DELETE', ''],
  ] as const) {
    test(`${method} /events/{eventId}${suffix} finds an owner's own events while they are there, and nothing else`, async (t) => {
      const server = await startServer(t)
      const [inbox, other] = [await anInbox(server), await anInbox(server)]
      await sendMany(server, inbox, { count: 2, body: String })
      await sendMany(server, other, { count: 1, body: String })
      const [kept, deleted] = (await server.mayfly.catch(inbox).page()).events
      const [theirs] = (await server.mayfly.catch(other).page()).events
      assert.ok(kept && deleted && theirs)
      await server.mayfly.catch(inbox).deleteEvent(deleted.id)
      const asked = (id: string, token: string | null, publicId = inbox.publicId) => {
        const path = `/api/catch/${publicId}/events/${id}${suffix}`
        return method === 'GET' ? ask(server, path, token) : askDelete(server, path, token ?? '')
      }
      const ids = [
        deleted.id,
        theirs.id,
        randomUUID(),
        kept.id.slice(0, -1),
        `${kept.id}0`,
        kept.id.replaceAll('-', ''),
        // The right place with another salt, another time, and the wrong place.
        `${kept.id.slice(0, 15)}${kept.id[15] === '0' ? '1' : '0'}${kept.id.slice(16)}`,
        `${kept.id[0] === '0' ? '1' : '0'}${kept.id.slice(1)}`,
        `${kept.id.slice(0, 24)}ffffffffffff`,
        ...['x', '1', '%20', '%00', "' or 1=1", '__proto__', 'x'.repeat(200)],
      ]
      for (const id of ids) assert.deepEqual(await asked(id, inbox.ownerToken), NOT_FOUND, id)
      const elsewhere = await asked(kept.id, other.ownerToken, other.publicId)
      assert.deepEqual(elsewhere, NOT_FOUND)
      assert.equal((await eventsOf(server, inbox)).length, 1)
      assert.equal((await eventsOf(server, other)).length, 1)
      const found = await asked(kept.id.toUpperCase(), inbox.ownerToken)
      assert.equal(found.status, method === 'GET' ? 200 : 204, 'in either case')
      server.clock.advance(DAY)
      assert.deepEqual(await asked(kept.id, inbox.ownerToken), NOT_FOUND, 'expired')
      await server.mayfly.catch(inbox).destroy()
      assert.deepEqual(await asked(kept.id, inbox.ownerToken), NOT_FOUND, 'destroyed')
    })
  }
})
