import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { rfc3339 } from '../../src/lib/clock.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import { PULSE_PLANS, type PulseCapability, type PulsePlan } from '../../src/pulse/schema.ts'
import { createPulse, type PulseService } from '../../src/pulse/service.ts'
import type { MonitorRow } from '../../src/pulse/store.ts'
import type { After } from '../support/folder.ts'
import { UNWATCHED } from '../support/pulse-monitor.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

test('the first ping ends the wait, and the next ones change nothing but the times', async (t) => {
  const { ping, seen, at } = await aMonitor(t)
  assert.deepEqual(await seen(), { state: 'waiting', since: 0, lateAt: null })
  at(17)
  assert.ok(await ping())
  assert.deepEqual(await seen(), { state: 'operational', since: 17, lateAt: 17 + 2 * MINUTE })
  at(MINUTE)
  assert.ok(await ping())
  assert.deepEqual(await seen(), { state: 'operational', since: 17, lateAt: 3 * MINUTE })
})

test('a ping at the last millisecond keeps it operational, one at the deadline revives it', async (t) => {
  const { ping, seen, at } = await aMonitor(t)
  await ping()
  at(2 * MINUTE - 1)
  await ping()
  assert.deepEqual(await seen(), { state: 'operational', since: 0, lateAt: 4 * MINUTE - 1 })
  at(4 * MINUTE - 1)
  assert.deepEqual(await seen(), {
    state: 'late',
    since: 4 * MINUTE - 1,
    lateAt: 4 * MINUTE - 1,
  })
  await ping()
  assert.deepEqual(await seen(), {
    state: 'operational',
    since: 4 * MINUTE - 1,
    lateAt: 6 * MINUTE - 1,
  })
})

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

test('the last ping is accepted and exhausts it, for good', async (t) => {
  const { ping, seen, at, change } = await aMonitor(t, { heartbeatLimit: 2 })
  await ping()
  at(1)
  assert.ok(await ping())
  assert.deepEqual(await seen(), { state: 'exhausted', since: 1, lateAt: null })
  at(2)
  assert.equal(await ping(), false)
  await change({ graceSeconds: 600 })
  at(DAY - 1)
  assert.deepEqual(await seen(), { state: 'exhausted', since: 1, lateAt: null })
  at(DAY)
  assert.deepEqual(await seen(), { state: 'expired', since: DAY, lateAt: null })
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

test('an address of a status dies with the sharing, and only then', async (t) => {
  const { change, status } = await aMonitor(t)
  const share = async (publicStatusEnabled?: boolean) => {
    await change(publicStatusEnabled === undefined ? { name: 'x' } : { publicStatusEnabled })
    return (await status()).publicStatusId
  }
  const first = await share(false)
  assert.equal((await status()).publicStatusId, first, 'it was not shared')
  for (const is of [true, undefined, true]) assert.equal(await share(is), first)
  assert.notEqual(await share(false), first)
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

test('the next change is foretold for whoever waits for it', async (t) => {
  const { pulse, monitor, ping, at, change } = await aMonitor(t)
  assert.equal(pulse.nextChangeAt(await monitor()), T + DAY)
  await ping()
  assert.equal(pulse.nextChangeAt(await monitor()), T + 2 * MINUTE)
  await change({ graceSeconds: 120 })
  assert.equal(pulse.nextChangeAt(await monitor()), T + 3 * MINUTE)
  at(3 * MINUTE)
  assert.equal(pulse.nextChangeAt(await monitor()), T + DAY)
  at(DAY)
  assert.equal(pulse.nextChangeAt(await monitor()), null)
})

test('a purge forgets what has been over for a day, however much, and nothing else', async (t) => {
  const shop = await aShop(t)
  await Promise.all(Array.from({ length: 401 }, () => shop.grant(PULSE_PLANS.spark)))
  const longer = await shop.grant(PULSE_PLANS.standard)
  shop.at(2 * DAY - 1)
  assert.equal(await shop.purge(), 0)
  shop.at(2 * DAY)
  assert.equal(await shop.purge(), 401)
  assert.deepEqual(await shop.db.read('select public_id from pulse_monitor'), [
    { public_id: longer.publicId },
  ])
})

type Shop = {
  db: Db
  pulse: PulseService
  purge(): Promise<number>
  /** Moves the clock to so long after the start. */
  at(ms: number): void
  grant(plan: PulsePlan): Promise<PulseCapability>
}

/** The service on a store of its own, with a clock that stands still until it is moved. */
async function aShop(t: After): Promise<Shop> {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  let now = T
  const pulse = createPulse({
    db,
    hints: createHints(),
    clock: { now: () => now, windows: () => [], isHeld: () => false, beat: async () => undefined },
    ...UNWATCHED,
  })
  return {
    db,
    pulse,
    purge: () => pulse.purge(now),
    at(ms) {
      now = T + ms
    },
    async grant(plan) {
      const grant = {
        orderId: 'order_1',
        publicId: PULSE_PROVISIONING.newPublicId(),
        planId: plan.planId,
        plan,
        terms: null,
        seed: crypto.getRandomValues(new Uint8Array(32)),
        settledAt: now,
        expiresAt: now + plan.durationSeconds * SECOND,
      }
      await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
      return PULSE_PROVISIONING.capability(grant) as PulseCapability
    },
  }
}

async function aMonitor(t: After, change: Partial<PulsePlan> = {}) {
  const shop = await aShop(t)
  const capability = await shop.grant({ ...PULSE_PLANS.spark, ...change })
  const { pulse } = shop
  const { publicId, ownerToken, pingToken } = capability
  const sinceStart = (time: string | null): number | null =>
    time === null ? null : Date.parse(time) - T

  async function monitor(): Promise<MonitorRow> {
    const found = await pulse.owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  const status = async () => pulse.status(await monitor())
  return {
    ...shop,
    capability,
    monitor,
    status,
    async ping() {
      const facts = await pulse.pinged(publicId, pingToken)
      return facts !== null && pulse.signal(facts, { kind: 'ping', rid: null })
    },
    change: async (settings: Parameters<PulseService['change']>[1]) =>
      pulse.change(await monitor(), settings),
    /** The state and its times, in milliseconds from the start. */
    async seen() {
      const { state, stateChangedAt, lateAt } = await status()
      return { state, since: sinceStart(stateChangedAt), lateAt: sinceStart(lateAt) }
    },
  }
}
