import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertInbox } from '../../src/catch/store.ts'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { tokenFromSeed, tokenHash } from '../../src/secrets/tokens.ts'
import { anInbox, ID, REQUEST, serviceOn } from '../support/inboxes.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const now = () => 1

test('an inbox is destroyed and its delivery is sealed in one unit', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(INBOX), DELIVERED_ORDER))
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

test('an inbox that is over is emptied, although the events that came lately cannot be sorted in', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(INBOX), DELIVERED_ORDER))
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
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(INBOX), DELIVERED_ORDER))
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

const OWNER_TOKEN = tokenFromSeed('catch_owner', Buffer.alloc(32))
const INBOX = anInbox({ ownerTokenHash: tokenHash(OWNER_TOKEN) })

const DELIVERED_ORDER = {
  text: `insert into purchase_order
    (order_id, secret_id, request_hash, product, plan_id, plan, terms, memo, amount_sats,
     client_network, state, created_at, looked_up_at, network, bolt11, payment_hash, quote_expires_at,
     settled_at, public_id, seed,
     expires_at, delivered_at, opened_by, contested)
    values ('order_0', '', $1, 'catch', 'spark', '{}', 'null', '', 1, '', 'settled', 0, 0, 'regtest', '', '', 0, 0, $2,
      $1, 10, 0, '', 0)`,
  values: [Buffer.alloc(32), ID],
}
