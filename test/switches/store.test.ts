import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import {
  bindingOf,
  bindSecret,
  dropBindings,
  dropSwitches,
  extendBindings,
  killBindings,
  makeSwitch,
  monitorOf,
  openArmed,
  reserveBinding,
} from '../../src/switches/store.ts'
import type { After } from '../support/folder.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'
import { aMonitor, DAY, MONITOR, OTHER, T } from './monitors.ts'

test('a monitor that lasts longer keeps what waits for it for as long, and nothing of another monitor', async (t) => {
  const { run, bound, binding } = await aStore(t)
  const [mine, others] = [await bound(MONITOR), await bound(OTHER)]
  await run(extendBindings(MONITOR, T + 9 * DAY))
  assert.equal((await binding(mine)).monitor_ends_at, T + 9 * DAY)
  assert.equal((await binding(others)).monitor_ends_at, T + DAY)
  await run(extendBindings(MONITOR, T + 2 * DAY))
  assert.equal((await binding(mine)).monitor_ends_at, T + 9 * DAY, 'it never gets shorter')
})

test('a monitor that lasts longer changes nothing of what is open or dead', async (t) => {
  const { run, bound, binding } = await aStore(t)
  const open = await bound(MONITOR)
  await run(openArmed({ monitorId: MONITOR, pingCount: 1, now: T + 2 }))
  const dead = await bound(MONITOR)
  await run(killBindings([MONITOR], T + 3))
  await run(extendBindings(MONITOR, T + 9 * DAY))
  for (const one of [open, dead]) assert.equal((await binding(one)).monitor_ends_at, T + DAY)
})

test('the end of a monitor shuts what waits for it, once, and neither what is open nor what waits for another', async (t) => {
  const { run, bound, binding } = await aStore(t)
  const [open, others] = [await bound(MONITOR), await bound(OTHER)]
  await run(openArmed({ monitorId: MONITOR, pingCount: 1, now: T + 2 }))
  const waiting = await bound(MONITOR)
  await run(killBindings([MONITOR], T + 3), killBindings([MONITOR], T + 4))
  assert.equal((await binding(waiting)).dead_at, T + 3)
  assert.equal((await binding(open)).dead_at, null)
  assert.equal((await binding(others)).dead_at, null)
})

test('the switch of a monitor that is gone binds nothing more, and that of another monitor does', async (t) => {
  const { db, run, switchOf } = await aStore(t)
  const [gone, other] = [await switchOf(MONITOR), await switchOf(OTHER)]
  await run(dropSwitches([MONITOR]))
  assert.equal(await monitorOf(db, gone), null)
  assert.equal(await monitorOf(db, other), OTHER)
})

test('a secret is bound once', async (t) => {
  const { run, reserved, bound, binding } = await aStore(t)
  const order = await reserved(MONITOR)
  const publicId = await bound(MONITOR, order)
  await assert.rejects(run(bindSecret({ ...order, publicId: newId('whisper'), now: T + 1 })))
  assert.equal((await binding(publicId)).bound_at, T)
})

test('an order that is asked for again waits for the monitor that it names then', async (t) => {
  const { db, reserved } = await aStore(t)
  const order = await reserved(MONITOR)
  await reserved(OTHER, { ...order, monitorEndsAt: T + 2 * DAY, now: T + 5 })
  assert.deepEqual(
    await db.read('select monitor_id, monitor_ends_at, reserved_at from reveal_binding'),
    [{ monitor_id: OTHER, monitor_ends_at: T + 2 * DAY, reserved_at: T + 5 }],
  )
})

test('what a ping has armed opens by a silence, and what none has armed does not', async (t) => {
  const { run, bound, binding, pinged } = await aStore(t)
  const armed = await bound(MONITOR)
  await pinged(MONITOR, 1)
  const unarmed = await bound(MONITOR)
  await run(openArmed({ monitorId: MONITOR, pingCount: 1, now: T + 9 }))
  assert.equal((await binding(armed)).opened_at, T + 9)
  assert.equal((await binding(unarmed)).opened_at, null)
})

test('what is open stays open since then', async (t) => {
  const { run, bound, binding } = await aStore(t)
  const publicId = await bound(MONITOR)
  for (const now of [T + 2, T + 3]) {
    await run(openArmed({ monitorId: MONITOR, pingCount: 1, now }))
  }
  assert.equal((await binding(publicId)).opened_at, T + 2)
})

test('a secret notes how many pings its own monitor has had', async (t) => {
  const { bound, binding, pinged } = await aStore(t)
  await pinged(OTHER, 5)
  await pinged(MONITOR, 3)
  assert.equal((await binding(await bound(MONITOR))).bound_ping_count, 3)
})

test('the bindings of forgotten secrets are forgotten, and no others', async (t) => {
  const { db, run, bound, binding } = await aStore(t)
  const [over, living] = [await bound(MONITOR), await bound(MONITOR)]
  await run(dropBindings([over]))
  assert.equal(await bindingOf(db, over), null)
  assert.equal((await binding(living)).monitor_id, MONITOR)
})

/** A store with two monitors. */
async function aStore(t: After) {
  const db = await aDatabase(t)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  await run(aMonitor(MONITOR, T + DAY), aMonitor(OTHER, T + DAY))

  async function switchOf(monitorId: string): Promise<string> {
    const { all } = await run(makeSwitch(newId('pulse_switch'), monitorId))
    return String(all[0]?.switch_id)
  }

  async function reserved(
    monitorId: string,
    { orderId = newId('order'), monitorEndsAt = T + DAY, now = T } = {},
  ) {
    const switchId = await switchOf(monitorId)
    await run(...reserveBinding({ orderId, switchId, monitorEndsAt, timing: 'T', now }))
    return { orderId }
  }

  async function bound(monitorId: string, order?: { orderId: string }): Promise<string> {
    const publicId = newId('whisper')
    await run(bindSecret({ ...(order ?? (await reserved(monitorId))), publicId, now: T }))
    return publicId
  }

  const binding = async (publicId: string) =>
    (await bindingOf(db, publicId)) ?? assert.fail('it is not bound')

  const pinged = (monitorId: string, times: number) =>
    run({
      text: 'update pulse_monitor set ping_count = $2 where public_id = $1',
      values: [monitorId, times],
    })

  return { db, run, switchOf, reserved, bound, binding, pinged }
}
