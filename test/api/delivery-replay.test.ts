import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import {
  aDeliveredOrder,
  anOrder,
  aPaidOrder,
  assertStoreLacks,
  bearer,
  DAY,
  DELIVERED,
  eventIdIn,
  ingest,
  MINUTE,
  NOT_FOUND,
  poll,
  purchase,
} from '../support/delivery.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'

test('a buyer who shows the key gets the same bytes again, by poll and by purchase', async (t) => {
  const server = await startServer(t)
  const { orderId, key } = await aPaidOrder(server)
  const first = await poll(server, orderId)
  assert.equal(first.status, 200)
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), first)
    assert.deepEqual(await purchase(server, key), first)
  }
  assert.deepEqual(await poll(server, orderId), DELIVERED, 'without the key')
})

test('the purchase itself, repeated, is a first delivery', async (t) => {
  const server = await startServer(t)
  const { orderId, key } = await aPaidOrder(server)
  const first = await purchase(server, key)
  assert.equal(first.status, 200)
  assert.deepEqual(await poll(server, orderId), DELIVERED)
  assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), first)
})

test('50 repeats at once by the buyer all get the same bytes', async (t) => {
  const server = await startServer(t)
  const { orderId, key } = await aPaidOrder(server)
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      i % 2 === 0 ? purchase(server, key) : poll(server, orderId, { 'idempotency-key': key }),
    ),
  )
  assert.equal(answers[0]?.status, 200)
  assert.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
})

test('a poll with another key finds nothing, and takes nothing', async (t) => {
  const server = await startServer(t)
  const { orderId, key } = await aPaidOrder(server)
  const { key: other } = await anOrder(server)
  for (const wrong of [randomUUID(), other, key.toUpperCase()]) {
    assert.deepEqual(await poll(server, orderId, { 'idempotency-key': wrong }), NOT_FOUND)
  }
  const malformed = await poll(server, orderId, { 'idempotency-key': 'short' })
  assert.deepEqual(malformed, { status: 400, text: '{"error":"invalid idempotency key"}' })
  assert.equal((await poll(server, orderId)).status, 200)
  assert.deepEqual(
    await poll(server, orderId, { 'idempotency-key': randomUUID() }),
    NOT_FOUND,
    'after the delivery too',
  )
})

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

for (const [name, use] of uses) {
  test(`${name} ends the replay for good, and wipes the seed`, async (t) => {
    const server = await startServer(t)
    const { orderId, key, inbox } = await aDeliveredOrder(server)
    await use(server, inbox)
    assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), DELIVERED)
    assert.deepEqual(await purchase(server, key), DELIVERED)
    assert.deepEqual(await poll(server, orderId), DELIVERED)
    assert.deepEqual(await query(server, 'select seed from purchase_order'), [{ seed: null }])
  })
}

test('nothing that fails, and nobody without the token, ends the replay', async (t) => {
  const server = await startServer(t)
  const { orderId, key, inbox, text } = await aDeliveredOrder(server)
  const { inbox: other } = await aDeliveredOrder(server)
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

  assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), { status: 200, text })
})

test('an authenticated request that a full inbox refuses does not end the replay', async (t) => {
  const server = await startServer(t)
  const { key, inbox, text } = await aDeliveredOrder(server)
  const sent = Array.from({ length: 100 }, () => ingest(server, inbox.publicId))
  assert.deepEqual(new Set(await Promise.all(sent)), new Set([204]))
  assert.equal(await ingest(server, inbox.publicId, bearer(inbox.ingestToken)), 401)
  assert.deepEqual(await purchase(server, key), { status: 200, text })
})

test('the replay ends 24 hours after the first delivery', async (t) => {
  const server = await startServer(t)
  const { orderId, key } = await aPaidOrder(server, 'standard')
  server.clock.advance(DAY)
  const first = await poll(server, orderId)
  assert.equal(first.status, 200, 'it starts with the delivery, not with the payment')
  server.clock.advance(DAY - MINUTE)
  assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), first)
  server.clock.advance(MINUTE)
  assert.deepEqual(await poll(server, orderId, { 'idempotency-key': key }), DELIVERED)
  assert.deepEqual(await purchase(server, key, 'standard'), DELIVERED)
})

test('the store holds no token and no key, before, during and after the delivery', async (t) => {
  const server = await startServer(t)
  const { key, inbox } = await aDeliveredOrder(server)
  const secrets = [key, inbox.ownerToken, inbox.ingestToken]
  await assertStoreLacks(server, secrets)
  await server.mayfly.catch(inbox).status()
  await assertStoreLacks(server, secrets)
})
