import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suspendInbox } from '../../src/catch/store.ts'
import { NOT_FOUND, UNAUTHORIZED } from '../support/answer.ts'
import {
  anInbox,
  ask,
  askDelete,
  asOperator,
  BARE_BYTES,
  eventsOf,
  send,
  sendBare,
  UNAVAILABLE,
} from '../support/catch.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const DAY = 24 * 60 * 60 * 1000
/** The server looks for what is over this often. */
const PURGE = 30_000

test('the owner sees the whole state of an inbox, in each of its states', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  const fresh = await owner.status()
  const seen = {
    publicId: inbox.publicId,
    planId: 'spark',
    status: 'active',
    requestLimit: 100,
    storageLimitBytes: 5_242_880,
    maxBytesPerRequest: 65_536,
    acceptedRequestCount: 0,
    storedBytes: 0,
    createdAt: fresh.createdAt,
    expiresAt: inbox.expiresAt,
  }
  assert.deepEqual(fresh, seen)
  assert.equal(Date.parse(seen.createdAt) + DAY, Date.parse(seen.expiresAt))
  assert.match(seen.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  await Promise.all(Array.from({ length: 100 }, () => sendBare(server, inbox, { body: '12345' })))
  const storedBytes = 100 * (BARE_BYTES + '5'.length + 5)
  const full = { ...seen, acceptedRequestCount: 100, storedBytes }
  assert.deepEqual(await owner.status(), { ...full, status: 'exhausted' })

  await asOperator(server, suspendInbox(inbox.publicId, server.now()))
  assert.deepEqual(await owner.status(), { ...full, status: 'suspended' }, 'above exhausted')
  assert.equal((await eventsOf(server, inbox)).length, 100)

  server.clock.advance(DAY)
  assert.deepEqual(await owner.status(), { ...full, status: 'expired' }, 'above suspended')

  await owner.destroy()
  const path = `/api/catch/${inbox.publicId}`
  assert.deepEqual(await ask(server, path, inbox.ownerToken), NOT_FOUND)
  assert.deepEqual(await askDelete(server, path, inbox.ownerToken), NOT_FOUND)
})

test('the content of an expired inbox is gone at once; its owner sees why until the purge, then nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const longer = await anInbox(server, 'standard')
  await send(server, inbox, { method: 'POST', body: 'x' })
  await send(server, longer, { method: 'POST', body: 'x' })
  const owner = server.mayfly.catch(inbox)
  const [event] = (await owner.page()).events
  const path = `/api/catch/${inbox.publicId}`

  server.clock.advance(DAY)
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  assert.equal((await owner.status()).status, 'expired')
  assert.deepEqual(await owner.page(), { events: [], nextCursor: null, latestSequence: 1 })
  assert.deepEqual((await owner.page({ q: 'x' })).events, [])
  assert.deepEqual(
    await askDelete(server, `${path}/events/${event?.id}`, inbox.ownerToken),
    NOT_FOUND,
  )

  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(
    await query(server, 'select public_id from catch_event join catch_inbox on number = inbox'),
    [{ public_id: longer.publicId }],
  )
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'expired')

  server.clock.advance(15 * 60 * 1000)
  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(await ask(server, path, inbox.ownerToken), NOT_FOUND)
  assert.deepEqual(await ask(server, `${path}/events`, inbox.ownerToken), UNAUTHORIZED)
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  assert.equal((await eventsOf(server, longer)).length, 1)
})
