import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Db, Unit } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { timesIn } from '../../src/lib/time-list.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { ALWAYS_SEEING } from '../../src/pulse/fairness.ts'
import { createPinging } from '../../src/pulse/pinging.ts'
import { createPulseStore, insertMonitor } from '../../src/pulse/store.ts'
import { createTurning } from '../../src/pulse/turning.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const ID = 'pulse_0000000000000000000000'
const JOB = { publicId: ID, pingTokenHash: Buffer.alloc(32) }
const EXPIRES_AT = 2_000_000_000_000
const NOW = EXPIRES_AT - 1_000_000

async function aMonitor(t: TestContext, heartbeatLimit: number) {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(
    unit(
      insertMonitor({
        ...{ publicId: ID, publicStatusId: 'pulse_status_0', planId: 'spark', heartbeatLimit },
        ...{ ownerTokenHash: Buffer.alloc(32), pingTokenHash: Buffer.alloc(32) },
        ...{ minimumGraceSeconds: 60, expectedIntervalSeconds: 60, graceSeconds: 60 },
        ...{ createdAt: 1, expiresAt: EXPIRES_AT, checkAt: EXPIRES_AT - 1 },
      }),
    ),
  )
  const written: Unit[] = []
  const db: Db = {
    ...store,
    write(one) {
      written.push(one)
      return store.write(one)
    },
  }
  const sealing = createSealing({ db, clock: systemClock })
  const watch = { notice: async () => undefined, fairness: () => ALWAYS_SEEING }
  const turning = createTurning({
    ...{ db, sealing, watch },
    ...{ hints: createHints(), clock: systemClock, listeners: [] },
  })
  return {
    ping: createPinging({ db, sealing, turning }),
    written,
    async row() {
      const monitor = await createPulseStore(store).monitor(ID)
      assert.ok(monitor)
      return monitor
    },
  }
}

test('pings that arrive together are one flushed unit, and each has its count and its time', async (t) => {
  const { ping, written, row } = await aMonitor(t, 100)
  assert.equal(await ping(JOB, NOW), true)
  written.length = 0
  const times = [NOW + 1, NOW + 1, NOW + 3, NOW + 2]
  assert.deepEqual(
    await Promise.all(times.map((time) => ping(JOB, time))),
    times.map(() => true),
  )
  assert.deepEqual(
    written.map(({ durability = 'flushed' }) => durability),
    ['flushed'],
  )
  const { accepted_heartbeat_count, last_ping_at, state_since, recent_heartbeats } = await row()
  assert.deepEqual(
    { accepted_heartbeat_count, last_ping_at, state_since },
    { accepted_heartbeat_count: 5, last_ping_at: NOW + 2, state_since: NOW },
  )
  assert.deepEqual(timesIn(recent_heartbeats), [...times.toReversed(), NOW])
})

test('exactly as many pings that arrive together are accepted as the monitor has left', async (t) => {
  const { ping, row } = await aMonitor(t, 150)
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => ping(JOB, NOW + i)))
  assert.equal(answers.filter((isRecorded) => isRecorded).length, 150)
  const { accepted_heartbeat_count, recent_heartbeats } = await row()
  assert.equal(accepted_heartbeat_count, 150)
  assert.equal(timesIn(recent_heartbeats).length, 100)
})

test('pings that arrive together are accepted only before the end of the monitor', async (t) => {
  const { ping, row } = await aMonitor(t, 100)
  const times = [EXPIRES_AT - 1, EXPIRES_AT, EXPIRES_AT - 2]
  assert.deepEqual(await Promise.all(times.map((time) => ping(JOB, time))), [true, false, true])
  assert.equal((await row()).accepted_heartbeat_count, 2)
})

test('the first of several pings after a lateness begins the new state', async (t) => {
  const { ping, row } = await aMonitor(t, 100)
  await ping(JOB, NOW)
  const back = NOW + 120_000
  await Promise.all([back, back + 5].map((time) => ping(JOB, time)))
  const { state_since, last_ping_at } = await row()
  assert.deepEqual([state_since, last_ping_at], [back, back + 5])
})
