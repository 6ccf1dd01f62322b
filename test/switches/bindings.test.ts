import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { bindSecret } from '../../src/switches/store.ts'
import {
  createBindings,
  createSwitchOwner,
  type MonitorHealth,
} from '../../src/switches/switches.ts'
import type { After } from '../support/folder.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'
import { aMonitor, DAY, MONITOR, OTHER, T } from './monitors.ts'

const MINUTE = 60_000

/** Holds whatever the store has, or never. */
const THERE = { text: 'select 1 as one', values: [], expect: 1 }
const GONE = { ...THERE, text: 'select 1 as one where 1 = 0' }
/** It was started twice, too, which is no ping. */
const ONE_PING = {
  text: 'update pulse_monitor set accepted_heartbeat_count = 3, ping_count = 1 where public_id = $1',
  values: [MONITOR],
}
const LASTING: MonitorHealth = {
  isHealthy: true,
  expiresAt: T + 30 * DAY,
  beatsLastMs: 30 * DAY,
  opensAfterMs: 2 * MINUTE,
  isFallingSilent: false,
  timing: 'T',
}

test('a ping after the purchase arms the switch, and the silence after that opens it for good', async (t) => {
  const scene = await aScene(t)
  const { bindings, publicId } = await scene.bound()
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('waiting', T))
  scene.pinged(T + MINUTE)
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('armed', T + MINUTE))
  scene.pinged(T + 2 * MINUTE)
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('armed', T + MINUTE))
  assert.equal(await bindings.isOpen(publicId), false)

  await scene.change('silent', { now: T + 10 * MINUTE })
  assert.equal(await bindings.isOpen(publicId), true)
  await scene.change('silent', { now: T + 20 * MINUTE })
  await scene.change('exhausted', { now: T + 21 * MINUTE })
  await scene.gone()
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('open', T + 10 * MINUTE))
})

test('a ping after the purchase arms the switch, also if the clock was set back in between', async (t) => {
  const scene = await aScene(t)
  const { bindings, publicId } = await scene.bound()
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('waiting', T))
  scene.pinged(T - 5 * MINUTE)
  await scene.change('silent', { now: T + 10 * MINUTE })
  assert.equal(await bindings.isOpen(publicId), true)
})

test('a switch says that it is armed by a ping with an earlier time, and since the purchase at the earliest', async (t) => {
  const scene = await aScene(t)
  const { bindings, publicId } = await scene.bound()
  scene.pinged(T - 5 * MINUTE)
  scene.pinged(T + 5 * MINUTE)
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('armed', T))
  const later = await aScene(t)
  const bound = await later.bound()
  later.pinged(T + 5 * MINUTE)
  later.pinged(T + 6 * MINUTE)
  assert.deepEqual(
    await later.bindings.status(bound.publicId, T + DAY),
    at('armed', T + 5 * MINUTE),
  )
})

test('a ping before the purchase arms nothing, also if the clock was ahead then', async (t) => {
  const scene = await aScene(t)
  scene.pings[0] = T + 5 * MINUTE
  const { bindings, publicId } = await scene.bound()
  assert.deepEqual(await bindings.status(publicId, T + DAY), at('waiting', T))
  await scene.change('silent', { now: T + DAY })
  assert.equal(await bindings.isOpen(publicId), false)
})

test('a silence that began before the purchase opens nothing, and neither does one of another monitor', async (t) => {
  const scene = await aScene(t)
  const { bindings, publicId } = await scene.bound()
  await scene.change('silent', { now: T + DAY })
  assert.equal(await bindings.isOpen(publicId), false)
  scene.pinged(T + MINUTE)
  await scene.change('silent', { now: T + DAY, publicId: OTHER })
  assert.equal(await bindings.isOpen(publicId), false)
})

test('lateness, a failed run, an expiring monitor and a recovery never open it', async (t) => {
  const scene = await aScene(t)
  const { bindings, publicId } = await scene.bound()
  for (const type of ['late', 'failed', 'expiring', 'exhausting', 'recovered']) {
    await scene.change(type, { now: T + DAY })
    assert.equal(await bindings.isOpen(publicId), false, type)
  }
})

test('a repeat of a purchase whose invoice the node did not make reserves the switch again', async (t) => {
  const scene = await aScene(t)
  const order = await scene.reserved()
  await scene.reserved(order)
  const { publicId } = await scene.settled(order)
  await assert.rejects(scene.reserved(order), 'a secret that is bound stays bound')
  assert.deepEqual(await scene.rows(), [{ public_id: publicId }])
})

test('a healthy monitor that is used up, destroyed or over leaves the secret shut for good', async (t) => {
  for (const end of ['exhausted', 'gone', 'expired']) {
    const scene = await aScene(t)
    const { bindings, publicId } = await scene.bound()
    scene.pinged(T + MINUTE)
    if (end === 'exhausted') await scene.change(end, { now: T + DAY })
    else if (end === 'gone') await scene.gone(T + DAY)
    else scene.move(T + 30 * DAY)
    const status = await bindings.status(publicId, T + 31 * DAY)
    assert.equal(status?.state, 'dead', end)
    if (end === 'expired') continue
    await scene.change('silent', { now: T + 2 * DAY })
    assert.equal(await bindings.isOpen(publicId), false, end)
  }
})

test('a switch is bound only to a healthy monitor that lasts as long as the secret, in time and in pings', async (t) => {
  const scene = await aScene(t)
  const { bindings, switchId } = scene
  const may = async (health: Partial<MonitorHealth> | null) => {
    scene.health = health && { ...LASTING, ...health }
    return (await bindings.reserve(switchId, 7 * DAY)) !== null
  }
  assert.equal(await may({}), true)
  assert.equal(await may({ isHealthy: false }), false)
  const opens = LASTING.opensAfterMs
  assert.equal(await may({ expiresAt: T + 7 * DAY + opens, beatsLastMs: 7 * DAY }), true)
  assert.equal(await may({ expiresAt: T + 7 * DAY + opens - 1 }), false)
  assert.equal(await may({ beatsLastMs: 7 * DAY - 1 }), false)
  assert.equal(await may(null), false)
  scene.health = LASTING
  assert.equal(await bindings.reserve(newId('pulse_switch'), DAY), null)
  assert.equal(await bindings.reserve(MONITOR, DAY), null)
})

test('a retired switch binds nothing more; what was quoted and what is bound stays bound', async (t) => {
  const scene = await aScene(t)
  const { bindings, owner, switchId } = scene
  const before = await scene.bound()
  const quoted = await scene.reserved()
  assert.equal(await owner.retire(MONITOR), true)
  assert.equal(await owner.retire(MONITOR), false)
  assert.equal(await bindings.reserve(switchId, DAY), null)
  const paid = await scene.settled(quoted)
  scene.pinged(T + MINUTE)
  await scene.change('silent', { now: T + DAY })
  for (const { publicId } of [before, paid]) assert.equal(await bindings.isOpen(publicId), true)
  assert.notEqual(await owner.make(MONITOR, THERE), switchId)
})

test('a monitor has one switch, also if twenty ask at once', async (t) => {
  const { owner, switchId } = await aScene(t)
  const made = await Promise.all(Array.from({ length: 20 }, () => owner.make(MONITOR, THERE)))
  assert.deepEqual([...new Set(made)], [switchId])
})

test('a monitor that is destroyed while its switch is made has none', async (t) => {
  const { owner } = await aScene(t)
  assert.equal(await owner.make(OTHER, GONE), null)
  assert.equal(await owner.retire(OTHER), false)
})

test('an order whose monitor died before it was paid is refused by its settlement, and binds nothing', async (t) => {
  for (const end of ['exhausted', 'gone', 'expired']) {
    const scene = await aScene(t)
    const quoted = await scene.reserved()
    if (end === 'exhausted') await scene.change(end, { now: T + DAY })
    else if (end === 'gone') await scene.gone()
    await assert.rejects(scene.settled(quoted, end === 'expired' ? T + 30 * DAY : T), end)
  }
})

test('what was reserved for an order that nobody paid is deleted, and what is bound stays', async (t) => {
  const scene = await aScene(t)
  const quoted = await scene.reserved()
  const { bindings, publicId } = await scene.bound()
  await bindings.purge(T + 40 * DAY)
  assert.equal((await scene.rows()).length, 2)
  await bindings.purge(T + 40 * DAY + 1)
  assert.deepEqual(
    (await scene.rows()).map(({ public_id }) => public_id),
    [publicId],
  )
  await assert.rejects(scene.settled(quoted))
})

/** What the buyer is told of a secret that lasts for a day. */
const NEXT = {
  waiting:
    'Let the job ping its monitor once more: the first ping after the purchase arms the switch.',
  armed: 'Nothing. The secret opens some time after the pings of its monitor stop.',
  open: 'Read the secret before it expires.',
  dead: 'This secret never opens. Buy another one with the switch of a monitor that is pinged.',
}

const at = (state: keyof typeof NEXT, since: number) => ({
  state,
  next: NEXT[state],
  since: new Date(since).toISOString(),
  worksUntil: new Date(T + DAY).toISOString(),
})

/** A monitor that was pinged once, with a switch, and secrets that are bound to it. */
async function aScene(t: After) {
  const db = await aDatabase(t)
  // The other one, which is the first of the store, has no ping.
  await db.write(unit(aMonitor(OTHER, T + 30 * DAY), aMonitor(MONITOR, T + 30 * DAY), ONE_PING))
  let now = T
  const clock = { now: () => now }
  const owner = createSwitchOwner({ db, clock })
  const scene = { health: { ...LASTING } as MonitorHealth | null, pings: [T - MINUTE] }
  const bindings = createBindings({
    db,
    clock,
    monitors: () => ({
      health: async () => scene.health,
      pingedAt: async (_monitorId, number) => scene.pings[number - 1] ?? null,
    }),
  })
  const switchId = (await owner.make(MONITOR, THERE)) ?? assert.fail('no switch')

  async function reserved({ orderId } = { orderId: newId('order') }): Promise<{ orderId: string }> {
    const reserve = await bindings.reserve(switchId, DAY)
    assert.ok(reserve)
    await db.write(unit(...reserve(orderId)))
    return { orderId }
  }

  async function settled({ orderId }: { orderId: string }, when = T) {
    const publicId = newId('whisper')
    await db.write(unit(bindSecret({ orderId, publicId, now: when })))
    return { publicId }
  }

  return Object.assign(scene, {
    owner,
    bindings,
    switchId,
    reserved,
    settled,
    bound: async () => ({ ...(await settled(await reserved())), bindings }),
    move(to: number) {
      now = to
    },
    pinged(time: number) {
      scene.pings.push(time)
    },
    change: (type: string, some: { now: number; publicId?: string }) =>
      db.write(
        unit(
          ...owner.onChange({
            type,
            publicId: MONITOR,
            at: some.now,
            pingCount: scene.pings.length,
            ...some,
          }),
        ),
      ),
    async gone(when = T) {
      now = when
      await db.write(unit(...owner.onGone([MONITOR])))
      scene.health = null
    },
    rows: () => db.read('select public_id from reveal_binding'),
  })
}
