/** Two instances: one sells a secret that waits for a monitor, while the other one destroys the monitor. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { createSwitchOwner } from '../../src/switches/owner.ts'
import { reserveBinding } from '../../src/switches/store.ts'
import { aSharedStore } from '../support/overtaken.ts'

const NOW = 1_800_000_000_000
const MONITOR = 'pulse_0cLz3H5jW9NfXb2mQx7RkT'
const THERE = { text: 'select 1 as one', values: [], expect: 1 }

test('a switch whose monitor is destroyed while it is bound is dead, not waiting for ever', async (t) => {
  const { db, overtaken } = await aSharedStore(t)
  const owner = createSwitchOwner({ db, clock: { now: () => NOW } })
  const switchId = (await owner.make(MONITOR, THERE)) ?? assert.fail('no switch')
  const monitorEndsAt = NOW + 1
  const reserved = reserveBinding({ orderId: newId('order'), switchId, monitorEndsAt, now: NOW })
  await overtaken(reserved, owner.onGone([MONITOR]))
  assert.deepEqual(await db.read('select dead_at from reveal_binding'), [{ dead_at: NOW }])
})
