/** Two instances: one sells a secret that waits for a monitor, while the other one destroys the monitor. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { reserveBinding } from '../../src/switches/store.ts'
import { createSwitchOwner } from '../../src/switches/switches.ts'
import { twoInstances } from '../support/instances.ts'
import { aSharedStore } from '../support/locks.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { purchaseWhisper, refusal, short } from '../support/whisper.ts'

const NOW = 1_800_000_000_000
const MONITOR = 'pulse_0cLz3H5jW9NfXb2mQx7RkT'
const THERE = { text: 'select 1 as one', values: [], expect: 1 }

test('a switch whose monitor is destroyed while it is bound is dead, not waiting for ever', async (t) => {
  const { db, overtaken } = await aSharedStore(t)
  const owner = createSwitchOwner({ db, clock: { now: () => NOW } })
  const switchId = (await owner.make(MONITOR, THERE)) ?? assert.fail('no switch')
  const monitorEndsAt = NOW + 1
  const reserved = reserveBinding({
    orderId: newId('order'),
    switchId,
    monitorEndsAt,
    timing: 'T',
    now: NOW,
  })
  await overtaken(reserved, owner.onGone([MONITOR]))
  assert.deepEqual(await db.read('select dead_at from reveal_binding'), [{ dead_at: NOW }])
})

/** SQLite's file has one service. */
const onPostgres = process.env.MAYFLY_TEST_ENGINE === 'postgres' ? test : () => undefined

onPostgres(
  'a purchase whose switch is retired in the same moment says that the switch is invalid, not to wait',
  async (t) => {
    const { a, sql, pay } = await twoInstances(t, await aPostgresDatabase())
    const monitor = await a.mayfly.buyPulse({
      planId: 'standard',
      onInvoice: (quote) => void pay(quote),
    })
    await a.mayfly.pulse(monitor).ping()
    const { switchId } = await a.mayfly.pulse(monitor).makeSwitch()
    await sql('begin')
    await sql('delete from reveal_switch')
    const asked = purchaseWhisper(a, { headers: { 'x-whisper-reveal-when': switchId } })
    await until('the purchase waits for the switch', async () => {
      const waiting = `select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
      return (await sql(waiting)).length > 0
    })
    await sql('commit')
    assert.deepEqual(short(await asked), refusal('invalid switch'))
  },
)
