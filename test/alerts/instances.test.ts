/** Two instances that change the alerts of one owner at the same time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activate, dropDestination, dropOwners, insertAlert } from '../../src/alerts/store.ts'
import type { Statement } from '../../src/db/db.ts'
import { destination as aDestination } from '../support/outbox.ts'
import { aSharedStore } from '../support/overtaken.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const NOW = 1_800_000_000_000
const OWNER = 'pulse_a'

const destination = (place = 0): Statement => aDestination(`destination ${place}`, OWNER, place)

const told = (): Statement[] =>
  insertAlert(OWNER, 'msg_1', {
    type: 'pulse.late',
    occurredAt: NOW,
    replaces: true,
    content: { data: {}, title: 't', text: 'x', isUrgent: false },
  })

test('a destination whose test is answered between the statements of an alert is not told of it', async (t) => {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  await db.write(unit(destination(0), activate('destination 0'), destination(1)))
  const [first, ...rest] = told()
  // Each statement of PostgreSQL sees what others have committed before it.
  for (const one of [first as Statement, activate('destination 1'), ...rest]) {
    await db.write(unit(one))
  }
  const rows = await db.read('select destination_id, position from alert')
  assert.deepEqual(rows, [{ destination_id: 'destination 0', position: 1 }])
})

for (const [what, drop] of [
  ['each destination', () => dropOwners([OWNER])],
  ['a destination', () => dropDestination('destination 0')],
] as const) {
  test(`an alert that is stored while ${what} of its owner is forgotten is forgotten too`, async (t) => {
    const { db, overtaken } = await aSharedStore(t)
    await db.write(unit(destination(), activate('destination 0')))
    await overtaken(told(), drop())
    const rows = await db.read(
      'select 1 as one from alert union all select 1 from alert_destination',
    )
    assert.deepEqual(rows, [])
  })
}
