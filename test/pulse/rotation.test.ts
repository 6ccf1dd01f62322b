/** Another ping token: which one pings, on every instance, and what becomes of the deadline. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Statement } from '../../src/db/db.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import type { PulseService } from '../../src/pulse/service.ts'
import type { Signal } from '../../src/pulse/transition.ts'
import type { After } from '../support/folder.ts'
import { aMonitor, MINUTE, PING } from '../support/pulse-monitor.ts'

test('an instance that remembers the old token refuses it after another one has replaced it, and takes the new one', async (t) => {
  const { instances, signal, ping, rotate, count } = await aFleet(t)
  const [a, b] = instances
  assert.equal(await ping({ by: b }), true)
  const token = await rotate(a)
  const signals: Signal[] = [PING, { kind: 'start', rid: null }]
  for (const one of [...signals, { kind: 'end', rid: null, exitCode: 0 } as const]) {
    for (const by of instances) assert.equal(await signal(one, { by }), false, one.kind)
  }
  assert.equal(await count(), 1)
  assert.equal(await ping({ by: b, token }), true)
  assert.equal(await ping({ by: a, token }), true)
  assert.equal(await count(), 3)
})

test('a ping that was let in by the old token is refused once the token is replaced', async (t) => {
  const { instances, capability, rotate, count } = await aFleet(t)
  const [a, b] = instances
  const facts = await b.pinged(capability.publicId, capability.pingToken)
  assert.ok(facts)
  const token = await rotate(a)
  const current = await b.pinged(capability.publicId, token)
  assert.ok(current)
  const answers = await Promise.all([facts, current, facts].map((one) => b.signal(one, PING)))
  assert.deepEqual(answers, [false, true, false])
  assert.equal(await count(), 1)
})

test('each of many rotations at once gives a token, and exactly one of the tokens pings', async (t) => {
  const { instances, ping, rotate } = await aFleet(t)
  const [a, b] = instances
  const tokens = await Promise.all(Array.from({ length: 8 }, (_, i) => rotate(i % 2 ? a : b)))
  assert.equal(new Set(tokens).size, 8)
  for (const instance of instances) {
    const answers: boolean[] = []
    for (const token of tokens) answers.push(await ping({ by: instance, token }))
    assert.equal(answers.filter(Boolean).length, 1)
  }
})

test('pings that come while the token is replaced count for one of both, and none is lost', async (t) => {
  const { instances, ping, rotate, count } = await aFleet(t)
  const [a, b] = instances
  const [token, ...answers] = await Promise.all([
    rotate(a),
    ...Array.from({ length: 20 }, (_, i) => ping({ by: i % 2 ? a : b })),
  ])
  assert.equal(await count(), answers.filter(Boolean).length)
  assert.equal(await ping({ by: a }), false)
  assert.equal(await ping({ by: b, token }), true)
})

test('a new token seals the sale in its own unit, so that no repeat hands out the old one', async (t) => {
  for (const kind of ['ping', 'owner'] as const) {
    const { run, db, monitor } = await aFleet(t)
    const units: string[] = []
    const write: typeof db.write = (one) => {
      const statements = Object.values<Statement | Statement[]>(one.statements).flat()
      units.push(statements.map(({ text }) => text).join())
      return db.write(one)
    }
    assert.ok(await run({ ...db, write }).rotateToken(await monitor(), kind))
    const rotating = units.find((text) => text.includes('update pulse_monitor'))
    assert.ok(rotating?.includes('update purchase_order'), rotating)
  }
})

test('the deadline counts from the new token, and a lateness goes on', async (t) => {
  const { instances, ping, rotate, at, seen } = await aFleet(t)
  const [a] = instances
  await ping({ by: a })
  at(MINUTE)
  const token = await rotate(a)
  assert.deepEqual(await seen(), { state: 'operational', since: 0, lateAt: 3 * MINUTE })
  at(3 * MINUTE)
  await rotate(a)
  assert.deepEqual(await seen(), { state: 'late', since: 3 * MINUTE, lateAt: 3 * MINUTE })
  assert.equal(await ping({ by: a, token }), false)
  assert.deepEqual(await seen(), { state: 'late', since: 3 * MINUTE, lateAt: 3 * MINUTE })
})

test('a new token of a monitor that waits for its first ping leaves it waiting, and one that has ended gets none', async (t) => {
  const { instances, rotate, at, seen, monitor } = await aFleet(t)
  const [a, b] = instances
  await rotate(a)
  assert.deepEqual(await seen(), { state: 'waiting', since: 0, lateAt: null })
  const read = await monitor()
  at(PULSE_PLANS.spark.durationSeconds * 1000)
  assert.equal(await a.rotateToken(read, 'ping'), null)
  at(0)
  await a.destroy(read)
  assert.equal(await b.rotateToken(read, 'ping'), null)
})

/** Two instances on one store, and a monitor with an interval and a grace of a minute. */
async function aFleet(t: After) {
  const one = await aMonitor(t)
  return {
    ...one,
    instances: [one.pulse, one.run()] as const,
    count: async () => (await one.monitor()).accepted_heartbeat_count,
    async rotate(by: PulseService): Promise<string> {
      const token = await by.rotateToken(await one.monitor(), 'ping')
      assert.ok(token)
      return token
    },
  }
}
