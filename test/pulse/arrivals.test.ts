/** A network that breaks in front of a service which lives on: whom it blames, and what it doubts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db, Value } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { createArrivals } from '../../src/pulse/arrivals.ts'
import type { PulseListener } from '../../src/pulse/changes.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import { PULSE_PLANS, type PulseCapability } from '../../src/pulse/schema.ts'
import { createPulse } from '../../src/pulse/service.ts'
import { createWatch } from '../../src/pulse/watch.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
/** Pings come in these steps, and the instances look, count and scan between them. */
const STEP = 4 * SECOND

/** Two instances on one store, and monitors of a minute of interval and one of grace. */
async function aService(t: After) {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  let now = T
  const clock = { now: () => now, monotonic: () => now - T }
  const told: { type: string; publicId: string; at: number; isDoubtful: boolean }[] = []
  const events: string[] = []
  const note = ({ event }: { event: string }) => void events.push(event)
  const listener: PulseListener = {
    onChange: () => [],
    onGone: () => [],
    onStored: (changes) => void told.push(...changes),
  }
  const instance = async () => {
    const db = await openDatabase(databaseUrl)
    t.after(() => db.close())
    const watch = createWatch({ db, clock, isClockJumped: () => false })
    await watch.beat()
    const log = { info: note, warn: note, error: note }
    let isBroken = false
    const write: typeof db.write = async (unit) => {
      if (isBroken) throw new Error('the store is away')
      return db.write(unit)
    }
    const arrivals = createArrivals({ db: { ...db, write }, clock, watch, log })
    const parts = { db, hints: createHints(), clock, watch, onArrival: arrivals.arrived }
    const pulse = createPulse({ ...parts, listeners: [listener, arrivals.listener] })
    const breakStore = (is: boolean): void => {
      isBroken = is
    }
    return { db, watch, arrivals, pulse, breakStore }
  }
  const instances = [await instance(), await instance()] as const
  const [{ db }] = instances

  async function buy(): Promise<PulseCapability> {
    const grant = {
      ...{
        orderId: 'order_1',
        publicId: PULSE_PROVISIONING.newPublicId(),
        planId: 'spark' as const,
      },
      ...{ plan: { ...PULSE_PLANS.spark, heartbeatLimit: 10_000 }, terms: null },
      ...{ seed: crypto.getRandomValues(new Uint8Array(32)) },
      ...{ settledAt: now, expiresAt: now + PULSE_PLANS.spark.durationSeconds * SECOND },
    }
    await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
    return PULSE_PROVISIONING.capability(grant) as PulseCapability
  }

  async function ping({ publicId, pingToken }: PulseCapability, through: 0 | 1): Promise<void> {
    const { pulse } = instances[through]
    const facts = await pulse.pinged(publicId, pingToken)
    assert.ok(facts && (await pulse.signal(facts, { kind: 'ping', rid: null })))
  }

  return {
    ...{ told, events, instances, ping },
    monitors: (count: number) => Promise.all(Array.from({ length: count }, buy)),
    types: () => told.map(({ type }) => type),
    seconds: () => (now - T) / SECOND,
    isDoubtful: () => instances.map(({ watch }) => watch.fairness().isDoubtful),
    windows: async () =>
      (await db.read('select began_at, ended_at, cause from pulse_blind_window')).map(
        ({ began_at, ended_at, cause }) => [
          cause,
          ...[began_at, ended_at].map((time) => (Number(time) - T) / SECOND),
        ],
      ),
    /** Lets time pass, in which each of these pings once a minute, through one instance or the other. */
    async pass(ms: number, alive: readonly PulseCapability[]): Promise<void> {
      for (const end = now + ms; now < end; ) {
        now += STEP
        const turn = ((now - T) / STEP) % (MINUTE / STEP)
        const due = alive.filter((_, i) => i % (MINUTE / STEP) === turn)
        await Promise.all(due.map((one, i) => ping(one, (i % 2) as 0 | 1)))
        for (const { watch, arrivals, pulse } of instances) {
          await watch.beat()
          await arrivals.look()
          await pulse.scan()
        }
      }
    },
  }
}

test('an outage of the network in front of a service that lives makes nobody late, and it doubts itself', async (t) => {
  const { monitors, pass, told, types, isDoubtful, windows, events } = await aService(t)
  const jobs = await monitors(60)
  await pass(5 * MINUTE, jobs)
  assert.deepEqual([types(), isDoubtful(), await windows()], [[], [false, false], []])
  await pass(10 * MINUTE, [])
  assert.deepEqual([types(), isDoubtful()], [[], [true, true]])
  await pass(5 * MINUTE, jobs)
  assert.deepEqual([types(), isDoubtful()], [[], [false, false]])
  const [[cause, beganAt, endedAt] = [], ...others] = await windows()
  assert.deepEqual([cause, others], ['arrivals', []])
  assert.ok(Number(beganAt) <= 5 * 60 && Number(endedAt) >= 15 * 60, `${beganAt} to ${endedAt}`)
  assert.deepEqual(told, [])
  assert.deepEqual(events.toSorted(), [
    ...['pulse.pings_back', 'pulse.pings_back'],
    ...['pulse.pings_missing', 'pulse.pings_missing'],
  ])
})

test('one dead job among a hundred is late in time, and its silence is believed', async (t) => {
  const { monitors, pass, ping, told, types, isDoubtful, windows } = await aService(t)
  const [dead, ...alive] = await monitors(101)
  assert.ok(dead)
  await pass(2 * MINUTE, alive)
  await ping(dead, 0)
  await pass(2 * MINUTE - STEP, alive)
  assert.deepEqual(told, [])
  await pass(STEP, alive)
  assert.deepEqual(types(), ['late'])
  await pass(MINUTE, alive)
  assert.deepEqual(types(), ['late', 'silent'])
  assert.ok(told.every(({ publicId, isDoubtful }) => publicId === dead.publicId && !isDoubtful))
  assert.deepEqual([isDoubtful(), await windows()], [[false, false], []])
})

test('jobs that are all dead are told late after a quarter of an hour, marked, and open no switch', async (t) => {
  const { monitors, pass, told, types, isDoubtful } = await aService(t)
  const jobs = await monitors(30)
  await pass(3 * MINUTE, jobs)
  await pass(14 * MINUTE, [])
  assert.deepEqual(types(), [])
  await pass(20 * MINUTE, [])
  assert.deepEqual(types(), Array(30).fill('late'))
  assert.ok(told.every((one) => one.isDoubtful))
  assert.deepEqual(isDoubtful(), [true, true])
})

test('monitors that never ping, or stay dead, do not keep the service in doubt of the others', async (t) => {
  const { monitors, pass, told, isDoubtful } = await aService(t)
  const [many, [victim, other]] = [await monitors(60), await monitors(2)]
  assert.ok(victim && other)
  await monitors(40)
  await pass(2 * MINUTE, [...many, victim, other])
  await pass(2 * MINUTE + 20 * SECOND, [victim, other])
  assert.deepEqual(isDoubtful(), [true, true], 'more than nine of ten pings are missing')
  await pass(6 * MINUTE, [victim, other])
  assert.deepEqual(isDoubtful(), [false, false])
  told.length = 0
  await pass(4 * MINUTE, [other])
  const late = told.filter(({ publicId }) => publicId === victim.publicId)
  assert.deepEqual(
    late.map(({ type, isDoubtful }) => [type, isDoubtful]),
    [
      ['late', false],
      ['silent', false],
    ],
  )
})

test('pings of a long grace are missed too, where the deadlines of many other monitors come first', async (t) => {
  const { monitors, ping, pass, instances, windows } = await aService(t)
  const [{ db }] = instances
  const jobs = await monitors(30)
  await db.write(unit({ text: 'update pulse_monitor set grace_seconds = 600', values: [] }))
  await Promise.all(jobs.map((job) => ping(job, 0)))
  await monitors(200)
  // They never ping, so they are late in nothing, and are looked at before the others.
  const soon = 'update pulse_monitor set check_at = $1 where last_ping_at is null'
  await db.write(unit({ text: soon, values: [T + 6 * MINUTE + 30 * SECOND] }))
  await pass(6 * MINUTE - STEP, [])
  assert.deepEqual(await windows(), [])
  await pass(STEP, [])
  assert.deepEqual(
    (await windows()).map(([cause]) => cause),
    ['arrivals'],
  )
})

test('a store with few monitors is asked for their deadlines once, and with more for those of longer graces', async (t) => {
  const { monitors, instances } = await aService(t)
  const [{ db, watch }] = instances
  let asked = 0
  const read = ((text: string, ...values: Value[]) => {
    if (text.includes('pulse_monitor')) asked++
    return db.read(text, ...values)
  }) as Db['read']
  const log = { info() {}, warn() {}, error() {} }
  const { look } = createArrivals({ db: { ...db, read }, clock: { now: () => T }, watch, log })
  await monitors(199)
  await look()
  assert.equal(asked, 1)
  await monitors(1)
  await look()
  assert.equal(asked, 1 + 5)
})

test('pings that the store could not count are counted with the next ones, and once', async (t) => {
  const { monitors, ping, instances } = await aService(t)
  const [job] = await monitors(1)
  assert.ok(job)
  const [{ db, arrivals, breakStore }] = instances
  const counted = async () =>
    Number((await db.read('select sum(arrived_count) as n from pulse_arrival'))[0]?.n)
  await ping(job, 0)
  breakStore(true)
  await assert.rejects(arrivals.look(), /the store is away/)
  assert.equal(await counted(), 0)
  breakStore(false)
  await ping(job, 0)
  await arrivals.look()
  await arrivals.look()
  assert.equal(await counted(), 2)
})

test('a ping is missed at half of its grace, so that a run that takes longer makes no window', async (t) => {
  const { monitors, pass, ping, instances, windows } = await aService(t)
  const jobs = await monitors(30)
  const [{ db }] = instances
  await db.write(unit({ text: 'update pulse_monitor set grace_seconds = 600', values: [] }))
  await Promise.all(jobs.map((job) => ping(job, 0)))
  await pass(6 * MINUTE - STEP, [])
  assert.deepEqual(await windows(), [])
  await pass(STEP, [])
  assert.deepEqual(await windows(), [['arrivals', 240, 360]])
})
