/**
 * Stores events of many inboxes, deletes some, and has them sorted in often, until it is killed. Prints a line for
 * each event that was stored (`+ salt`), and one before each that is deleted (`- salt`).
 */

import { deleteEvent } from '../../src/catch/event-store.ts'
import { createPlaces } from '../../src/catch/event-tables.ts'
import { openStore } from '../../src/db/open.ts'
import { anEvent } from '../support/inboxes.ts'
import { unit } from '../support/unit.ts'

const [, , file = '', first = '0', inboxes = '1'] = process.argv
const db = await openStore({ kind: 'sqlite', file })
const writes = createPlaces(db, { between: 60, mostOfInbox: 12 })
let salt = Number(first)

async function storeOne(): Promise<void> {
  const mine = ++salt
  // Every third goes to one inbox, which becomes a busy one.
  // They were sold in a new store, one after the other.
  const inbox = 1 + (mine % 3 === 0 ? 0 : mine % Number(inboxes))
  const event = anEvent({ salt: mine, body: new Uint8Array(500), keptBytes: 500 })
  await db.write(unit(...writes.insert({ number: inbox, revision: 0 }, [event])))
  process.stdout.write(`+ ${mine}\n`)
  if (mine % 7 !== 0) return
  const [row] = await db.read<{ sequence: number }>(
    'select sequence from catch_event where inbox = $1 and salt = $2',
    inbox,
    mine,
  )
  process.stdout.write(`- ${mine}\n`)
  await db.write(unit(...deleteEvent(writes, inbox, { sequence: row?.sequence ?? 0, salt: mine })))
}

async function storeOn(): Promise<void> {
  for (;;) await storeOne()
}
await Promise.all(Array.from({ length: 16 }, storeOn))
