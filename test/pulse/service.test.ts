import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { rfc3339 } from '../../src/lib/clock.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import { deliveredOrder } from '../support/order-rows.ts'
import { aMonitor, DAY, MINUTE, provisioned, SECOND, T } from '../support/pulse-monitor.ts'
import { unit } from '../support/unit.ts'

test('a new interval or grace counts from now, so it ends a lateness and makes nobody late', async (t) => {
  const { ping, seen, at, change } = await aMonitor(t)
  await ping()
  at(3 * MINUTE)
  assert.equal((await seen()).state, 'late')
  await change({ graceSeconds: 180 })
  const until = { state: 'operational', since: 3 * MINUTE, lateAt: 7 * MINUTE }
  assert.deepEqual(await seen(), until)
  at(5 * MINUTE)
  await change({ expectedIntervalSeconds: 20 })
  assert.deepEqual(await seen(), { ...until, lateAt: 5 * MINUTE + 200 * SECOND })
  at(5 * MINUTE + 199 * SECOND)
  assert.equal((await seen()).state, 'operational')
  at(5 * MINUTE + 200 * SECOND)
  const late = 5 * MINUTE + 200 * SECOND
  assert.deepEqual(await seen(), { state: 'late', since: late, lateAt: late })
})

test('a change that leaves interval and grace as they are leaves a lateness', async (t) => {
  const { ping, seen, at, change } = await aMonitor(t)
  await ping()
  at(3 * MINUTE)
  await change({ name: 'still', expectedIntervalSeconds: 60, graceSeconds: 60 })
  assert.deepEqual(await seen(), { state: 'late', since: 2 * MINUTE, lateAt: 2 * MINUTE })
})

test('settings that leave the state as it was leave the time that it began', async (t) => {
  const { ping, seen, at, change } = await aMonitor(t)
  at(5)
  await change({ expectedIntervalSeconds: 30 })
  assert.deepEqual(await seen(), { state: 'waiting', since: 0, lateAt: null })
  at(MINUTE)
  await ping()
  at(MINUTE + 30 * SECOND)
  await change({ expectedIntervalSeconds: 60 })
  assert.deepEqual(await seen(), {
    state: 'operational',
    since: MINUTE,
    lateAt: 3 * MINUTE + 30 * SECOND,
  })
})

test('a ping counts until the last millisecond of its life', async (t) => {
  const { ping, seen, at } = await aMonitor(t)
  at(DAY - 1)
  assert.ok(await ping())
  at(DAY)
  assert.equal(await ping(), false)
  assert.deepEqual(await seen(), { state: 'expired', since: DAY, lateAt: null })
})

test('the last hundred times are kept, newest first', async (t) => {
  const { ping, status, at } = await aMonitor(t)
  for (let i = 1; i <= 205; i++) {
    at(i)
    await ping()
    if (i % 50 !== 0 && i !== 1 && i !== 101 && i !== 205) continue
    const kept = Math.min(i, 100)
    const { recentHeartbeats, lastPingAt } = await status()
    assert.deepEqual(
      recentHeartbeats,
      Array.from({ length: kept }, (_, n) => rfc3339(T + i - n)),
    )
    assert.equal(lastPingAt, recentHeartbeats[0])
  }
})

test('the built-in defaults stay inside the bounds of the interface, whatever the plan says', async (t) => {
  const small = await aMonitor(t, { suggestedCadenceSeconds: 1, minimumGraceSeconds: 1 })
  const large = await aMonitor(t, { suggestedCadenceSeconds: 1e7, minimumGraceSeconds: 1e7 })
  const [least, most] = [await small.status(), await large.status()]
  assert.deepEqual([least.expectedIntervalSeconds, least.graceSeconds], [20, 60])
  assert.deepEqual([most.expectedIntervalSeconds, most.graceSeconds], [604_800, 604_800])
  assert.ok(await small.change({ graceSeconds: 60 }))
  assert.ok(await large.change({ graceSeconds: 604_800 }))
})

test('two changes at once of different settings both hold', async (t) => {
  const { change, status } = await aMonitor(t)
  await Promise.all([change({ name: 'a' }), change({ description: 'b' })])
  const { name, description } = await status()
  assert.deepEqual([name, description], ['a', 'b'])
})

test('whoever listens is told what happens to this monitor, and nothing after it stopped', async (t) => {
  const { pulse, capability, ping, change, monitor } = await aMonitor(t)
  const told: string[] = []
  const first = pulse.listen(capability.publicId, () => told.push('first'))
  const second = pulse.listen(capability.publicId, () => told.push('second'))
  pulse.listen('pulse_of_another', () => assert.fail('this is about another monitor'))
  await ping()
  assert.deepEqual(told, ['first', 'second'])
  first?.()
  first?.()
  await change({ name: 'x' })
  assert.equal(await pulse.pinged(capability.publicId, capability.ownerToken), null)
  await pulse.destroy(await monitor())
  assert.deepEqual(told.slice(2), ['second', 'second'])
  second?.()
  await ping()
  assert.equal(told.length, 4)
})

test('a purge forgets what has been over for a day, however much, and nothing else', async (t) => {
  const { db, at, purge } = await aMonitor(t)
  await Promise.all(Array.from({ length: 400 }, () => provisioned(db, PULSE_PLANS.spark, T)))
  const longer = await provisioned(db, PULSE_PLANS.standard, T)
  at(2 * DAY - 1)
  assert.equal(await purge(), 0)
  at(2 * DAY)
  assert.equal(await purge(), 401)
  assert.deepEqual(await db.read('select public_id from pulse_monitor'), [
    { public_id: longer.publicId },
  ])
})

test('a monitor is destroyed once, and its delivery is sealed in the same unit', async (t) => {
  const { db, run, capability, monitor } = await aMonitor(t)
  await db.write(unit(deliveredOrder('pulse', capability.publicId)))
  let writes = 0
  // The store goes away after one unit, as it may at any moment.
  const failing: Db = {
    ...db,
    write: (one) => (writes++ === 0 ? db.write(one) : Promise.reject(new StoreAway('gone'))),
  }
  const read = await monitor()
  assert.equal(await run(failing).destroy(read), true)
  assert.equal(await run(db).destroy(read), false)
  const [order] = await db.read('select seed, sealed_by from purchase_order')
  assert.deepEqual(order, { seed: null, sealed_by: 'use' })
})
