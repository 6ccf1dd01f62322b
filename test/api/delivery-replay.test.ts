import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { eventId } from '../../src/catch/event.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { DELIVERED, deliveredOrder, idempotencyKey, poll, purchase } from '../support/buying.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { holds, query } from '../support/store.ts'

suite('the replay of a delivery', () => {
  const theServer = shareServer()

  const uses: [
    name: string,
    use: (server: TestServer, inbox: CatchCapability) => Promise<unknown>,
  ][] = [
    ['reading the status', (server, inbox) => server.mayfly.catch(inbox).status()],
    ['listing events', (server, inbox) => server.mayfly.catch(inbox).page()],
    [
      'deleting an event',
      async (server, { publicId, ownerToken }) => {
        assert.equal(await ingest(server, publicId), 204)
        // The list would be a use already, so the id comes out of the store.
        const id = await eventIdIn(server)
        const deleted = await fetch(`${server.url}/api/catch/${publicId}/events/${id}`, {
          method: 'DELETE',
          headers: bearer(ownerToken),
        })
        assert.equal(deleted.status, 204)
      },
    ],
    ['destroying the inbox', (server, inbox) => server.mayfly.catch(inbox).destroy()],
    [
      'an authenticated request to the inbox',
      async (server, { publicId, ingestToken }) => {
        assert.equal(await ingest(server, publicId, bearer(ingestToken)), 204)
      },
    ],
  ]

  test('whatever uses a token of an inbox ends the replay for good, and wipes the seed', async (t) => {
    const server = await startServer(t)
    for (const [name, use] of uses) {
      const { orderId, key, inbox } = await deliveredOrder(server)
      await use(server, inbox)
      assert.deepEqual(await poll(server, orderId, idempotencyKey(key)), DELIVERED, name)
      assert.deepEqual(await purchase(server, { key }), DELIVERED, name)
      assert.deepEqual(await poll(server, orderId), DELIVERED, name)
      const seeds = await query(server, 'select distinct seed from purchase_order')
      assert.deepEqual(seeds, [{ seed: null }], name)
    }
  })

  test('no failed request, and no request without the token, ends the replay', async () => {
    const server = await theServer()
    const { orderId, key, inbox, text } = await deliveredOrder(server)
    const { inbox: other } = await deliveredOrder(server)
    const { publicId, ownerToken, ingestToken } = inbox
    const owner = `${server.url}/api/catch/${publicId}`
    const ask = async (path: string, token: string, method = 'GET'): Promise<number> =>
      (await fetch(owner + path, { method, headers: bearer(token) })).status

    assert.equal(await ingest(server, publicId), 204, 'a public request')
    assert.equal(await ingest(server, publicId, bearer(ownerToken)), 204, 'the owner token there')
    assert.equal(await ingest(server, publicId, bearer(other.ingestToken)), 204, 'of another inbox')
    assert.equal(await ingest(server, other.publicId, bearer(ingestToken)), 204, 'to another inbox')
    const tooLarge = await fetch(`${server.url}/c/${publicId}`, {
      method: 'POST',
      headers: bearer(ingestToken),
      body: 'x'.repeat(65_537),
    })
    assert.equal(tooLarge.status, 400, 'a refused body')
    assert.equal(await ask('', other.ownerToken), 404)
    assert.equal(await ask('', ingestToken), 401)
    assert.equal(await ask('', other.ownerToken, 'DELETE'), 404)
    assert.equal(await ask('/events', other.ownerToken), 401)
    assert.equal(await ask('/events?limit=0', ownerToken), 400)
    assert.equal(await ask('/events?surprise=1', ownerToken), 400)
    assert.equal(await ask('/events/nothing', ownerToken, 'DELETE'), 404)
    assert.equal(await ask(`/events/${randomUUID()}`, ownerToken, 'DELETE'), 404)

    assert.deepEqual(await poll(server, orderId, idempotencyKey(key)), { status: 200, text })
  })

  test('the store holds no token and no key, before, during and after the delivery', async (t) => {
    const server = await startServer(t)
    const { key, inbox } = await deliveredOrder(server)
    const secrets = [key, inbox.ownerToken, inbox.ingestToken]
    await assertStoreLacks(server, secrets)
    await server.mayfly.catch(inbox).status()
    await assertStoreLacks(server, secrets)
  })
})

async function ingest(
  server: TestServer,
  publicId: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const answer = await fetch(`${server.url}/c/${publicId}`, { method: 'POST', headers, body: 'x' })
  return answer.status
}

const bearer = (token: string): { authorization: string } => ({
  authorization: `Bearer ${token}`,
})

async function eventIdIn(server: TestServer): Promise<string> {
  const [row] = await query(server, 'select received_at, salt, sequence from catch_event')
  return eventId(row as Parameters<typeof eventId>[0])
}

async function assertStoreLacks(server: TestServer, secrets: string[]): Promise<void> {
  for (const secret of secrets) assert.ok(!(await holds(server, secret)), 'it holds a secret')
}
