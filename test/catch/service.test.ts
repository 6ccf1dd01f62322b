import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extendInbox, insertInbox } from '../../src/catch/store.ts'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { tokenFromSeed, tokenHash } from '../../src/secrets/tokens.ts'
import type { After } from '../support/folder.ts'
import { anInbox, ID, numberOf, REQUEST, serviceOn } from '../support/inboxes.ts'
import { deliveredOrder } from '../support/order-rows.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const now = () => 1

test('an inbox is destroyed and its delivery is sealed in one unit', async (t) => {
  const store = await aStore(t)
  let writes = 0
  // The store goes away after one unit, as it may at any moment.
  const db: Db = {
    ...store,
    write: (one) => (writes++ === 0 ? store.write(one) : Promise.reject(new StoreAway('gone'))),
  }
  const service = serviceOn(db, now)
  const inbox = await service.owned(ID, OWNER_TOKEN)
  assert.ok(inbox)
  assert.equal(await service.destroy(inbox), true)
  await service.used(inbox)
  const [order] = await store.read('select seed, sealed_at, sealed_by from purchase_order')
  assert.deepEqual(order, { seed: null, sealed_at: 1, sealed_by: 'use' })
})

test('an owner token that was replaced offers no other one, although its request began before', async (t) => {
  const store = await aStore(t)
  const service = serviceOn(store, now)
  const read = await service.owned(ID, OWNER_TOKEN)
  assert.ok(read)
  const token = await service.rotateToken(read, 'owner')
  assert.ok(token && (await service.owned(ID, token)))
  for (const kind of ['owner', 'ingest'] as const) {
    assert.equal(await service.rotateToken(read, kind), null)
  }
  assert.ok(await service.owned(ID, token))
})

test('a token that was offered does not take over once another one is offered, although its use began before', async (t) => {
  const store = await aStore(t)
  const service = serviceOn(store, now)
  const offer = async (): Promise<string> => {
    const inbox = await service.owned(ID, OWNER_TOKEN)
    return (inbox && (await service.rotateToken(inbox, 'owner'))) ?? assert.fail()
  }
  const first = await offer()
  let second = ''
  const late: Db = {
    ...store,
    async write(one) {
      second = await offer()
      return store.write(one)
    },
  }
  assert.equal(await serviceOn(late, now).owned(ID, first), null)
  assert.ok(await service.owned(ID, second))
})

test('an inbox that is over is emptied, although the events that came lately cannot be sorted in', async (t) => {
  const store = await aStore(t)
  const service = serviceOn(
    {
      ...store,
      write: (one) =>
        one.lockKey === 'catch_event_recent'
          ? Promise.reject(new StoreAway('full'))
          : store.write(one),
    },
    now,
  )
  const facts = await service.facts(ID)
  assert.ok(facts)
  assert.equal(await service.ingest(facts, REQUEST), facts)
  const failed = await service.purge(100).catch((error: unknown) => error)
  // What failed is told all the same. PostgreSQL sorts nothing in.
  assert.equal(failed instanceof StoreAway, store.engine === 'sqlite')
  assert.deepEqual(await store.read('select 1 as n from catch_event'), [])
})

test('what an owner changes counts from the next event on, whichever instance takes it', async (t) => {
  const store = await aStore(t)
  const [one, other] = [serviceOn(store, now), serviceOn(store, now)]
  const known = await other.facts(ID)
  const inbox = await one.owned(ID, OWNER_TOKEN)
  assert.ok(known && inbox)
  const chosen = { status: 200, body: 'yes' } as const
  assert.equal(await one.respond(inbox, chosen), true)
  assert.equal((await other.facts(ID))?.response, null)
  const stored = await Promise.all(Array.from({ length: 3 }, () => other.ingest(known, REQUEST)))
  assert.deepEqual(
    stored.map((facts) => facts?.response),
    [chosen, chosen, chosen],
  )
  const [{ events } = { events: 0 }] = await store.read(
    'select count(*) as events from catch_event',
  )
  assert.equal(events, 3)
  assert.deepEqual(await one.refusals(inbox), { total: 0, reasons: [] })
  assert.equal(await one.respond({ ...inbox, number: 99 }, null), false)
})

test('an inbox that is extended after the purge has read it keeps its events', async (t) => {
  const store = await aStore(t)
  let now = 0
  let beforeDelete = async (): Promise<void> => {}
  const db: Db = {
    ...store,
    async write(one) {
      if (one.lockKey === ID) await beforeDelete()
      return store.write(one)
    },
  }
  const service = serviceOn(db, () => now)
  const facts = await service.facts(ID)
  assert.ok(facts)
  assert.equal(await service.ingest(facts, REQUEST), facts)
  now = 2 * INBOX.expiresAt
  // Another instance extends it, at a moment when its own clock says that the inbox still lives.
  beforeDelete = async () => {
    beforeDelete = async () => {}
    await store.write(
      unit(
        extendInbox({
          number: await numberOf(store, ID),
          endsAt: INBOX.expiresAt,
          expiresAt: 9 * INBOX.expiresAt,
          moreRequests: 1,
          moreBytes: 1,
          now: INBOX.expiresAt - 1,
        }),
      ),
    )
  }
  await service.purge(now)
  const inbox = await service.facts(ID)
  assert.ok(inbox, 'the inbox lives')
  const [use] = await store.read(
    'select accepted_request_count as n, stored_bytes as b from catch_inbox_use',
  )
  const events = await store.read('select 1 as n from catch_event')
  const recent =
    store.engine === 'sqlite' ? await store.read('select 1 as n from catch_event_recent') : []
  assert.equal(events.length + recent.length, 1)
  assert.deepEqual([Number(use?.n), Number(use?.b) > 0], [1, true])
})

const OWNER_TOKEN = tokenFromSeed('catch_owner', Buffer.alloc(32))
const INBOX = anInbox({ ownerTokenHash: tokenHash(OWNER_TOKEN) })

/** A store with one inbox, of a sale that is not sealed. */
async function aStore(t: After): Promise<Db> {
  const db = await aDatabase(t)
  await db.write(unit(...insertInbox(INBOX), deliveredOrder('catch', ID)))
  return db
}
