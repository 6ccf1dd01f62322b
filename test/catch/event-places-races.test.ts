/**
 * Two stores on one file, as a service and a command beside it have, store, delete and sort in at once, in inboxes
 * that soon are full.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { deleteEvent } from '../../src/catch/event-store.ts'
import { createPlaces } from '../../src/catch/event-tables.ts'
import { insertInbox } from '../../src/catch/store.ts'
import { attempt, type Db } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { temporaryFolder } from '../support/folder.ts'
import { anEvent, anInbox } from '../support/inboxes.ts'
import { unit } from '../support/unit.ts'

const INBOXES = ['a', 'b', 'c', 'd']
/** As they are sold one after the other in a new store. */
const numberOf = (inbox: string): number => INBOXES.indexOf(inbox) + 1
const REQUESTS = 120
/** Less than the requests have, of which every fourth is deleted: some inboxes are full of bytes first. */
const STORAGE_BYTES = 4_000
const MOST_BYTES = 100
const LIMITS = anInbox({
  requestLimit: REQUESTS,
  storageLimitBytes: STORAGE_BYTES,
  maxBytesPerRequest: MOST_BYTES,
})
/** Who stores at once, on each of the two, and how often: about three times what the inboxes take. */
const WRITERS = 6
const TURNS = 60

test('limits are exact and every read is whole while two stores store, delete and sort in at once', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const both = [
    await openStore({ kind: 'sqlite', file }),
    await openStore({ kind: 'sqlite', file }),
  ]
  t.after(() => Promise.all(both.map((db) => db.close())))
  for (const inbox of INBOXES)
    await both[0]?.write(unit(...insertInbox({ ...LIMITS, publicId: inbox })))
  /** The salts that were acknowledged and are not being deleted, by inbox; and how many were ever acknowledged. */
  const kept = new Map(INBOXES.map((inbox) => [inbox, new Set<number>()]))
  const accepted = new Map(INBOXES.map((inbox) => [inbox, 0]))
  let salt = 0
  let refused = 0
  let isOver = false

  async function storeSome(db: Db, places: ReturnType<typeof createPlaces>): Promise<void> {
    const inbox = oneOf(INBOXES)
    const events = Array.from({ length: 1 + below(4) }, () => {
      const keptBytes = below(MOST_BYTES)
      return anEvent({ salt: ++salt, keptBytes, body: new Uint8Array(keptBytes) })
    })
    const done = await attempt(
      db.write(unit(...places.insert({ number: numberOf(inbox), revision: 0 }, events))),
    )
    if ('refused' in done) refused++
    else {
      accepted.set(inbox, (accepted.get(inbox) ?? 0) + events.length)
      for (const event of events) kept.get(inbox)?.add(event.salt)
    }
    const doomed = oneOf([...(kept.get(inbox) ?? [])])
    if (doomed === undefined || below(4) > 0) return
    kept.get(inbox)?.delete(doomed)
    const [row] = await db.read<{ sequence: number }>(
      'select sequence from catch_event where inbox = $1 and salt = $2',
      numberOf(inbox),
      doomed,
    )
    await db.write(
      unit(...deleteEvent(places, numberOf(inbox), { sequence: row?.sequence ?? 0, salt: doomed })),
    )
  }

  async function read(db: Db, { source }: ReturnType<typeof createPlaces>): Promise<void> {
    const inbox = oneOf(INBOXES)
    const before = [...(kept.get(inbox) ?? [])]
    const rows = await db.read<{ sequence: number; salt: number }>(
      `select sequence, salt from ${source} where inbox = $1 order by sequence desc`,
      numberOf(inbox),
    )
    const sequences = rows.map(({ sequence }) => sequence)
    assert.deepEqual(
      sequences,
      [...new Set(sequences)].sort((a, b) => b - a),
    )
    const found = new Set(rows.map((row) => row.salt))
    const missing = before.filter((one) => !found.has(one) && kept.get(inbox)?.has(one))
    assert.deepEqual([missing, await db.read(MISCOUNTED)], [[], []])
  }

  const writing = both.flatMap((db) => {
    const places = createPlaces(db, { between: 7, mostOfInbox: 4 })
    return Array.from({ length: WRITERS }, async () => {
      for (let turn = 0; turn < TURNS; turn++) await storeSome(db, places)
    })
  })
  const reading = both.map(async (db) => {
    const places = createPlaces(db)
    while (!isOver) await read(db, places)
  })
  const written = Promise.all(writing).finally(() => {
    isOver = true
  })
  await Promise.all([written, ...reading])
  const rows = await both[0]?.read(
    'select public_id, accepted_request_count as n from catch_inbox join catch_inbox_use using (number) order by public_id',
  )
  assert.deepEqual(
    rows,
    [...accepted].map(([public_id, n]) => ({ public_id, n })),
  )
  assert.ok(refused > 0)
})

const MISCOUNTED = `select number from catch_inbox_use i
  where accepted_request_count > request_limit or stored_bytes > storage_limit_bytes
    or stored_bytes <> (
      select coalesce(sum(kept_bytes), 0) from catch_event e where e.inbox = i.number)`

const below = (most: number): number => Math.floor(Math.random() * most)
const oneOf = <T>(some: T[]): T => some[below(some.length)] as T
