import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { attempt, type Db, type Unit } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { timesIn } from '../../src/lib/time-list.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { acceptAndFile, PINGS_TOGETHER } from '../../src/pulse/accepting.ts'
import { ALWAYS_SEEING } from '../../src/pulse/fairness.ts'
import { looseCount } from '../../src/pulse/history-rows.ts'
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
  const reads: string[] = []
  const db: Db = {
    ...store,
    read(text, ...values) {
      reads.push(text)
      return store.read(text, ...values)
    },
    write(one) {
      written.push(one)
      return store.write(one)
    },
  }
  // No ping comes from the future.
  const clock = { now: () => EXPIRES_AT }
  const sealing = createSealing({ db, clock })
  const watch = { notice: async () => undefined, fairness: () => ALWAYS_SEEING }
  const turning = createTurning({
    ...{ db, sealing, watch },
    ...{ hints: createHints(), clock, listeners: [] },
  })
  return {
    ping: createPinging({ db, sealing, turning }),
    /** Another instance, which has foreseen nothing. */
    another: () => createPinging({ db, sealing, turning }),
    ...{ db, written, reads },
    /** All stored times, oldest first: those of the chunks, and those that are in none. */
    async stored(): Promise<number[]> {
      const chunks = await store.read<{ position: number; times: string }>(
        'select position, times from pulse_ping_chunk where public_id = $1 order by position',
        ID,
      )
      const monitor = await createPulseStore(store).monitor(ID)
      assert.ok(monitor)
      const filed = chunks.flatMap(({ position, times }, place) => {
        assert.deepEqual([Number(position), timesIn(times).length], [place, 100])
        return timesIn(times).toReversed()
      })
      const recent = timesIn(monitor.recent_heartbeats).toReversed()
      assert.ok(recent.length <= 100, `${recent.length} times in the row`)
      assert.equal(monitor.chunk_count, chunks.length)
      return [...filed, ...recent.slice(recent.length - looseCount(monitor))]
    },
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

suite('pings that fill the row of the monitor', () => {
  const namesOf = (units: Unit[]): string[][] =>
    units.map(({ statements }) => Object.keys(statements).filter((name) => name !== 'seal'))

  test('pings that come by dozens are a unit each time, which files a hundred if they cross it, without a read', async (t) => {
    const { ping, written, reads, stored } = await aMonitor(t, 10_000)
    const sent = [NOW]
    await ping(JOB, NOW)
    // The first that does not take a turn learns how full the row is.
    await ping(JOB, NOW + 1)
    sent.push(NOW + 1)
    reads.length = 0
    const whole = PINGS_TOGETHER
    for (const count of [
      whole,
      whole,
      whole,
      1,
      4,
      1,
      1,
      whole,
      36,
      whole,
      whole - 1,
      37,
      1,
      whole,
    ]) {
      const before = sent.length
      written.length = 0
      const times = Array.from({ length: count }, (_, i) => NOW + before + i)
      const done = await Promise.all(times.map((time) => ping(JOB, time)))
      assert.ok(done.every(Boolean))
      sent.push(...times)
      const crosses = Math.ceil(sent.length / 100) > Math.ceil(before / 100)
      assert.deepEqual(
        namesOf(written),
        [crosses ? ['pings', 'chunk', 'row'] : ['pings']],
        `${count} after ${before}`,
      )
      assert.deepEqual(await stored(), sent)
    }
    assert.deepEqual(reads, [])
  })

  test('pings that are sent before the answers of others fill the row as foreseen', async (t) => {
    const { ping, written, reads, stored } = await aMonitor(t, 10_000)
    await ping(JOB, NOW)
    await ping(JOB, NOW)
    reads.length = 0
    const sent = [NOW, NOW]
    // What the store says of the first ones is right for the second ones, too.
    for (let burst = 0; burst < 2; burst++) {
      written.length = 0
      const times = Array.from({ length: PINGS_TOGETHER * 20 }, (_, i) => NOW + sent.length + i)
      assert.ok((await Promise.all(times.map((time) => ping(JOB, time)))).every(Boolean))
      sent.push(...times)
      assert.deepEqual(await stored(), sent)
      assert.deepEqual([written.length, reads.length], [20, 0])
    }
  })

  test('an instance that does not know how much others have filled files too, without a read', async (t) => {
    const { ping, another, reads, stored } = await aMonitor(t, 10_000)
    const sent = [NOW]
    await ping(JOB, NOW)
    reads.length = 0
    const instances = [ping, another(), another()]
    for (let round = 0; round < 60; round++) {
      const times = Array.from({ length: 1 + ((round * 7) % 40) }, (_, i) => NOW + sent.length + i)
      const send = instances[round % 3] ?? ping
      assert.ok((await Promise.all(times.map((time) => send(JOB, time)))).every(Boolean))
      sent.push(...times)
    }
    assert.deepEqual(await stored(), sent)
    assert.deepEqual(reads, [])
  })

  test('instances that fill the row at the same time neither lose nor double a time', async (t) => {
    const { ping, another, stored } = await aMonitor(t, 10_000)
    await ping(JOB, NOW)
    const instances = [ping, another(), another()]
    const times = Array.from({ length: 1_500 }, (_, i) => NOW + i)
    await Promise.all(times.map((time, i) => instances[i % 3]?.(JOB, time)))
    assert.deepEqual(
      (await stored()).toSorted((a, b) => a - b),
      [NOW, ...times],
    )
  })

  test('one unit files one chunk: more pings than that takes are refused', async (t) => {
    const { ping, db, stored } = await aMonitor(t, 10_000)
    const sent = Array.from({ length: 100 }, (_, i) => NOW + i)
    for (const time of sent) await ping(JOB, time)
    const write = (count: number) =>
      attempt(
        db.write({
          lockKey: ID,
          statements: acceptAndFile(JOB, Array(count).fill(NOW + 200)),
        }),
      )
    assert.deepEqual(await write(101), { refused: 'pings' })
    assert.deepEqual(await stored(), sent)
    assert.ok('rows' in (await write(100)))
    assert.deepEqual(await stored(), [...sent, ...Array(100).fill(NOW + 200)])
  })
})
