/** What a purge deletes when something changes between its look and its delete. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventTables } from '../../src/catch/event-tables.ts'
import { createPurge } from '../../src/catch/purge.ts'
import { createRefusals } from '../../src/catch/refusals.ts'
import { createCatch } from '../../src/catch/service.ts'
import { createInboxStore, extendInbox, insertInbox } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { createScheduler } from '../../src/http/turns.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const ID = 'catch_0000000000000000000000'
const HOUR = 3_600_000

test('an inbox that is extended after the purge has read it keeps its events', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(INBOX)))
  let now = 0
  let beforeDelete = async (): Promise<void> => {}
  const db: Db = {
    ...store,
    async write(one) {
      if (one.lockKey === ID) await beforeDelete()
      return store.write(one)
    },
  }
  const service = createCatch({
    db,
    hints: createHints(),
    clock: { now: () => now },
    isForwardingHeader: () => false,
    locate: () => null,
    scheduler: createScheduler(),
    secrets: createSecrets([new Uint8Array(32)]),
    onIngested: () => undefined,
  })
  const facts = await service.facts(ID)
  assert.ok(facts)
  assert.equal(await service.ingest(facts, REQUEST), facts)
  const [{ number } = assert.fail()] = await store.read<{ number: number }>(
    'select number from catch_inbox',
  )
  now = 2 * HOUR
  // Another instance extends it, at a moment when its own clock says that the inbox still lives.
  beforeDelete = async () => {
    beforeDelete = async () => {}
    await store.write(
      unit(
        extendInbox({
          ...{ number: Number(number), endsAt: INBOX.expiresAt, expiresAt: 9 * HOUR },
          ...{ moreRequests: 1, moreBytes: 1, now: INBOX.expiresAt - 1 },
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

test('an inbox that is over is deleted although what came lately cannot be sorted', async (t) => {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  await db.write(unit(...insertInbox(INBOX)))
  const events = { ...eventTables(db), tidy: () => Promise.reject(new Error('the disk is full')) }
  const refusals = createRefusals({ db, clock: { now: () => 2 * HOUR } })
  const purge = createPurge({ db, store: createInboxStore(db), events, refusals })
  await assert.rejects(purge(2 * HOUR), { message: 'the disk is full' })
  assert.deepEqual(await db.read('select public_id from catch_inbox'), [])
})

const INBOX = {
  publicId: ID,
  planId: 'spark' as const,
  ownerTokenHash: Buffer.alloc(32, 1),
  ingestTokenHash: Buffer.alloc(32, 2),
  requestLimit: 10,
  storageLimitBytes: 10_000,
  maxBytesPerRequest: 1_000,
  createdAt: 0,
  expiresAt: HOUR,
}

const REQUEST = {
  token: null,
  method: 'POST',
  path: '/',
  query: '',
  rawHeaders: [],
  body: Buffer.from('x'),
  sourceIp: '127.0.0.1',
  isProxied: false,
}
