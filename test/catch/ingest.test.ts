import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NewEvent } from '../../src/catch/event-store.ts'
import { createIngest } from '../../src/catch/ingest.ts'
import { insertInbox } from '../../src/catch/store.ts'
import type { Db, Unit } from '../../src/db/db.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

test('an event is acknowledged once a flushed unit has stored it', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(insertInbox(INBOX)))
  const written: Unit[] = []
  const db: Db = {
    ...store,
    write(one) {
      written.push(one)
      return store.write(one)
    },
  }
  const ingest = createIngest(db, createSealing({ db, clock: systemClock }))
  const stored = await Promise.all(
    (['authenticated', 'public', 'public'] as const).map((access) => ingest(ID, anEvent(access))),
  )
  assert.deepEqual(stored, [true, true, true])
  assert.ok(written.length > 0)
  for (const { durability = 'flushed' } of written) assert.equal(durability, 'flushed')
})

const ID = 'catch_0000000000000000000000'

const INBOX = {
  publicId: ID,
  planId: 'spark' as const,
  ownerTokenHash: Buffer.alloc(32),
  ingestTokenHash: Buffer.alloc(32),
  requestLimit: 10,
  storageLimitBytes: 10_000,
  maxBytesPerRequest: 1_000,
  createdAt: 0,
  expiresAt: 10,
}

const anEvent = (access: NewEvent['access']): NewEvent => ({
  salt: 1,
  receivedAt: 1,
  access,
  method: 'POST',
  path: '',
  query: '',
  headerLines: new Uint8Array(),
  contentType: null,
  mediaType: null,
  body: new Uint8Array(3),
  keptBytes: 3,
  bodySha256: '',
  sourceIp: '203.0.113.1',
  ipLocation: null,
})
