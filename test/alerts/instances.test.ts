/** Two instances that change the alerts of one owner at the same time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activate, dropDestination, dropOwners, insertAlert } from '../../src/alerts/store.ts'
import type { Statement } from '../../src/db/db.ts'
import { aSharedStore } from '../support/locks.ts'
import { destination as aDestination } from '../support/outbox.ts'
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
