/** What a purge deletes when something changes between its look and its delete. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extendInbox, insertInbox } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'
import { anInbox, ID, REQUEST, serviceOn } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const HOUR = 3_600_000
const INBOX = anInbox({ expiresAt: HOUR })

test('an inbox that is extended after the purge has read it keeps its events', async (t) => {
  const store = await aDatabase(t)
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
  const service = serviceOn(db, () => now)
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
          number: Number(number),
          endsAt: INBOX.expiresAt,
          expiresAt: 9 * HOUR,
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
