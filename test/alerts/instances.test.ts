/** Two instances that change the alerts of one owner at the same time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activate, dropDestination, dropOwners, insertAlert } from '../../src/alerts/store.ts'
import { aSharedStore } from '../support/locks.ts'
import { anAlert, destination } from '../support/outbox.ts'
import { unit } from '../support/unit.ts'

const OWNER = 'pulse_a'

for (const [what, drop] of [
  ['each destination', () => dropOwners([OWNER])],
  ['a destination', () => dropDestination('destination 0')],
] as const) {
  test(`an alert that is stored while ${what} of its owner is forgotten is forgotten too`, async (t) => {
    const { db, overtaken } = await aSharedStore(t)
    await db.write(unit(destination('destination 0', OWNER), activate('destination 0')))
    await overtaken(insertAlert(OWNER, 'msg_1', anAlert()), drop())
    const rows = await db.read(
      'select 1 as one from alert union all select 1 from alert_destination',
    )
    assert.deepEqual(rows, [])
  })
}
