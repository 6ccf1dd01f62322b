import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHints } from '../../src/db/hints.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import { createPulse, type Signal } from '../../src/pulse/service.ts'
import { createWatch } from '../../src/pulse/watch.ts'
import type { After } from '../support/folder.ts'
import { provisioned } from '../support/pulse-monitor.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const PING: Signal = { kind: 'ping', rid: null }

/** A monitor of a minute of interval and one of grace, on a service that watches its clock. Told is in seconds. */
async function aMonitor(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  let now = T
  let passed = 0
  const clock = { now: () => now, monotonic: () => passed }
  const watch = createWatch({ db, clock, isClockJumped: () => false })
  const told: string[] = []
  const pulse = createPulse({
    ...{ db, hints: createHints(), clock, watch, onArrival: () => undefined },
    listeners: [
      {
        ...{ onChange: () => [], onGone: () => [] },
        onStored(changes) {
          told.push(...changes.map(({ type, since }) => `${type} since ${(since - T) / SECOND}`))
        },
      },
    ],
  })
  const { publicId, pingToken } = await provisioned(db, PULSE_PLANS.spark, now)
  await watch.beat()
  return {
    ...{ told, watch },
    set(ms: number) {
      now += ms
    },
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= 5 * SECOND) {
        now += Math.min(left, 5 * SECOND)
        passed += Math.min(left, 5 * SECOND)
        await watch.beat()
      }
    },
    /** @param meanwhile what happens once the signal has its time, before anything of the store is read for it. */
    async signal(signal: Signal, meanwhile: () => void = () => undefined) {
      const facts = await pulse.pinged(publicId, pingToken)
      assert.ok(facts)
      const recorded = pulse.signal(facts, signal)
      meanwhile()
      assert.ok(await recorded)
    },
    /** Two pings that are recorded together. */
    async pings(meanwhile: () => void) {
      const facts = await pulse.pinged(publicId, pingToken)
      assert.ok(facts)
      const both = [pulse.signal(facts, PING), pulse.signal(facts, PING)]
      meanwhile()
      assert.deepEqual(await Promise.all(both), [true, true])
    },
    spells: async () =>
      (await db.read('select began_at, ended_at from pulse_late_spell')).map((spell) =>
        [spell.began_at, spell.ended_at].map((time) => (Number(time) - T) / SECOND),
      ),
  }
}

type Monitor = Awaited<ReturnType<typeof aMonitor>>

const rows: [
  what: string,
  send: (monitor: Monitor, work: () => void) => Promise<void>,
  tells: string[],
][] = [
  ['ping', ({ signal }, work) => signal(PING, work), []],
  ['ping with another one', ({ pings }, work) => pings(work), []],
  [
    'failure',
    ({ signal }, work) => signal({ kind: 'end', exitCode: 3, rid: null }, work),
    ['failed since 1225'],
  ],
]

for (const [what, send, tells] of rows) {
  test(`a ${what} that came before the clock was set back is not late by windows that have ended since`, async (t) => {
    const monitor = await aMonitor(t)
    const { signal, pass, set, watch, told, spells } = monitor
    await pass(5 * SECOND)
    await signal(PING)
    await pass(10 * SECOND)
    set(20 * MINUTE)
    await pass(10 * SECOND)
    assert.equal(watch.fairness().windows.length, 1)
    await send(monitor, () => set(-20 * MINUTE))
    const ended = { beganAt: T + 15 * SECOND, endedAt: T + 25 * SECOND }
    assert.deepEqual(watch.fairness().windows, [ended])
    assert.deepEqual(told, tells)
    assert.deepEqual(
      (await spells()).filter(([beganAt]) => beganAt !== 1225),
      [],
    )
  })
}

test('a ping that came before a small step back of the clock ends the lateness that it finds', async (t) => {
  const { signal, pass, set, told } = await aMonitor(t)
  await signal(PING)
  await pass(121 * SECOND)
  await signal(PING, () => set(-5 * SECOND))
  assert.deepEqual(told, ['late since 120', 'recovered since 121'])
})
