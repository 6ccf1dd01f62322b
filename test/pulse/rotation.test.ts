/** Another ping token: which one pings, on every instance, and what becomes of the deadline. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Statement } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import { PULSE_PLANS, type PulseCapability } from '../../src/pulse/schema.ts'
import { createPulse, type PulseService } from '../../src/pulse/service.ts'
import type { Signal } from '../../src/pulse/transition.ts'
import type { After } from '../support/folder.ts'
import { UNWATCHED } from '../support/pulse-monitor.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const MINUTE = 60_000
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const PING: Signal = { kind: 'ping', rid: null }

test('an instance that remembers the old token refuses it after another one has replaced it, and takes the new one', async (t) => {
  const { instances, id, ping, rotate, count } = await aFleet(t)
  const [a, b] = instances
  const old = await ping.with(b)
  assert.equal(old, true)
  const token = await rotate(a)
  for (const signal of [
    PING,
    { kind: 'start', rid: null },
    { kind: 'end', rid: null, exitCode: 0 },
  ]) {
    assert.equal(await ping.with(b, { signal: signal as Signal }), false, signal.kind)
    assert.equal(await ping.with(a, { signal: signal as Signal }), false, signal.kind)
  }
  assert.equal(await count(), 1)
  assert.equal(await ping.with(b, { token }), true)
  assert.equal(await ping.with(a, { token }), true)
  assert.equal(await count(), 3)
  assert.ok(id)
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
    for (const token of tokens) answers.push(await ping.with(instance, { token }))
    assert.equal(answers.filter(Boolean).length, 1)
  }
})

test('pings that come while the token is replaced count for one of both, and none is lost', async (t) => {
  const { instances, ping, rotate, count } = await aFleet(t)
  const [a, b] = instances
  const [token, ...answers] = await Promise.all([
    rotate(a),
    ...Array.from({ length: 20 }, (_, i) => ping.with(i % 2 ? a : b)),
  ])
  assert.equal(await count(), answers.filter(Boolean).length)
  assert.equal(await ping.with(a), false)
  assert.equal(await ping.with(b, { token }), true)
})

test('a new token seals the sale in its own unit, so that no repeat hands out the old one', async (t) => {
  const { instances, rotate, writes } = await aFleet(t)
  await rotate(instances[1])
  const [texts] = writes().filter((unit) =>
    unit.some((text) => text.includes('update pulse_monitor')),
  )
  assert.ok(
    texts?.some((text) => text.includes('update purchase_order')),
    String(texts),
  )
})

test('the deadline counts from the new token, and a lateness goes on', async (t) => {
  const { instances, ping, rotate, at, seen } = await aFleet(t)
  const [a] = instances
  await ping.with(a)
  at(MINUTE)
  const token = await rotate(a)
  assert.deepEqual(await seen(), { state: 'operational', lateAt: 3 * MINUTE })
  at(3 * MINUTE)
  await rotate(a)
  assert.deepEqual(await seen(), { state: 'late', lateAt: 3 * MINUTE })
  assert.equal(await ping.with(a, { token }), false)
  assert.deepEqual(await seen(), { state: 'late', lateAt: 3 * MINUTE })
})

test('a new token of a monitor that waits for its first ping leaves it waiting, and one that has ended gets none', async (t) => {
  const { instances, rotate, at, seen, monitor } = await aFleet(t)
  const [a, b] = instances
  await rotate(a)
  assert.deepEqual(await seen(), { state: 'waiting', lateAt: null })
  const read = await monitor()
  at(PULSE_PLANS.spark.durationSeconds * 1000)
  assert.equal(await a.rotateToken(read, 'ping'), null)
  at(0)
  await a.destroy(read)
  assert.equal(await b.rotateToken(read, 'ping'), null)
})

/** Two instances on one store, and a monitor with an interval and a grace of a minute. */
async function aFleet(t: After) {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  let now = T
  let written: string[][] = []
  const db: typeof store = {
    ...store,
    write(one) {
      written = [
        ...written,
        Object.values<Statement | Statement[]>(one.statements)
          .flat()
          .map(({ text }) => text),
      ]
      return store.write(one)
    },
  }
  const instance = (): PulseService =>
    createPulse({
      ...{ db, hints: createHints(), ...UNWATCHED },
      clock: {
        now: () => now,
        windows: () => [],
        isHeld: () => false,
        beat: async () => undefined,
      },
    })
  const instances = [instance(), instance()] as const
  const grant = {
    ...{ orderId: 'order_1', publicId: PULSE_PROVISIONING.newPublicId(), planId: 'spark' as const },
    ...{ plan: PULSE_PLANS.spark, terms: null, seed: crypto.getRandomValues(new Uint8Array(32)) },
    ...{ settledAt: T, expiresAt: T + PULSE_PLANS.spark.durationSeconds * 1000 },
  }
  await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
  const capability = PULSE_PROVISIONING.capability(grant) as PulseCapability
  const { publicId, ownerToken, pingToken } = capability

  async function monitor() {
    const found = await instances[0].owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  await instances[0].change(await monitor(), { expectedIntervalSeconds: 60, graceSeconds: 60 })
  return {
    ...{ instances, capability, monitor, id: publicId },
    row: monitor,
    writes: () => written,
    count: async () => (await monitor()).accepted_heartbeat_count,
    at(ms: number) {
      now = T + ms
    },
    async rotate(by: PulseService): Promise<string> {
      const token = await by.rotateToken(await monitor(), 'ping')
      assert.ok(token)
      return token
    },
    ping: {
      async with(
        by: PulseService,
        { token = pingToken, signal = PING }: { token?: string; signal?: Signal } = {},
      ): Promise<boolean> {
        const facts = await by.pinged(publicId, token)
        return facts !== null && by.signal(facts, signal)
      },
    },
    async seen() {
      const { state, lateAt } = await instances[0].status(await monitor())
      return { state, lateAt: lateAt === null ? null : Date.parse(lateAt) - T }
    },
  }
}
