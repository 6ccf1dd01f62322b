import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { timeText } from '../../src/lib/time-list.ts'
import { ALWAYS_SEEING, type Fairness } from '../../src/pulse/fairness.ts'
import { createHistoryReader, placeOf } from '../../src/pulse/history.ts'
import type { PulseHistory, PulseHistoryEntry } from '../../src/pulse/history-schema.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import { PULSE_PLANS, type PulseCapability, type PulsePlan } from '../../src/pulse/schema.ts'
import { createPulse } from '../../src/pulse/service.ts'
import { overBy } from '../support/deletion.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

type Page = { limit?: number; cursor?: string | null; type?: 'late' | null }

/** A monitor of a minute of interval and one of grace. Times are seconds from its beginning. */
async function aMonitor(t: After, plan: Partial<PulsePlan> = {}) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  let now = T
  let fairness: Fairness = ALWAYS_SEEING
  const clock = { now: () => now }
  const watch = { notice: async () => undefined, fairness: () => fairness }
  const run = (store: Db) =>
    createPulse({
      db: store,
      hints: createHints(),
      clock,
      watch,
      listeners: [],
      onArrival: () => undefined,
    })
  const pulse = run(db)
  const bought = { ...PULSE_PLANS.long, minimumGraceSeconds: 60, ...plan }
  const grant = {
    ...{ orderId: 'order_1', publicId: PULSE_PROVISIONING.newPublicId(), planId: bought.planId },
    ...{ plan: bought, terms: null, seed: crypto.getRandomValues(new Uint8Array(32)) },
    ...{ settledAt: now, expiresAt: now + bought.durationSeconds * SECOND },
  }
  await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
  const { publicId, ownerToken, pingToken } = PULSE_PROVISIONING.capability(
    grant,
  ) as PulseCapability
  const reader = createHistoryReader({ db, clock, watch })

  async function monitor() {
    const found = await pulse.owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  await pulse.change(await monitor(), { expectedIntervalSeconds: 60, graceSeconds: 60 })

  async function page({
    limit = 100,
    cursor = null,
    type = null,
  }: Page = {}): Promise<PulseHistory> {
    const place = cursor === null ? null : placeOf(cursor)
    assert.ok(cursor === null || place)
    const found = await reader.page(await monitor(), { limit, place, type })
    assert.ok(found)
    return found
  }
  const ping = async (service = pulse): Promise<boolean> => {
    const facts = await service.pinged(publicId, pingToken)
    return facts !== null && service.signal(facts, { kind: 'ping', rid: null })
  }
  return {
    ...{ db, run, pulse, reader, monitor, page, ping, publicId },
    at(seconds: number) {
      now = T + seconds * SECOND
    },
    /** Blind windows, in seconds. */
    blind(...windows: [number, number][]) {
      const times = windows.map(([began, ended]) => ({
        ...{ beganAt: T + began * SECOND, endedAt: T + ended * SECOND },
      }))
      fairness = { ...ALWAYS_SEEING, windows: times }
    },
    async signal(kind: 'start' | number | null, rid: string | null = null) {
      const facts = await pulse.pinged(publicId, pingToken)
      assert.ok(facts)
      const signal =
        kind === 'start'
          ? ({ kind: 'start', rid } as const)
          : ({ kind: 'end', exitCode: kind, rid } as const)
      return pulse.signal(facts, signal)
    },
    /** A ping a minute, from one second to another. */
    async pingsFrom(from: number, to: number) {
      for (let second = from; second < to; second += 60) {
        now = T + second * SECOND
        assert.ok(await ping())
      }
    },
    async all(limit = 100): Promise<PulseHistoryEntry[]> {
      const entries: PulseHistoryEntry[] = []
      let cursor: string | null = null
      do {
        assert.ok(entries.length < 5000, 'the pages end')
        const { entries: some, nextCursor } = await page({ limit, cursor })
        entries.push(...some)
        cursor = nextCursor
      } while (cursor !== null)
      return entries
    },
    purge: () => pulse.purge(overBy(now)),
    async rowsLeft() {
      const tables = ['pulse_ping_chunk', 'pulse_run', 'pulse_late_spell', 'pulse_gone']
      const counts = await Promise.all(
        tables.map((table) => db.read(`select count(*) as n from ${table}`)),
      )
      return counts.map(([row]) => Number(row?.n))
    },
  }
}

const seconds = (time: string | null): number | null =>
  time === null ? null : (Date.parse(time) - T) / SECOND

/** An entry in short: its type, when it began, and when it ended or how its run did. */
function short({ type, at, endedAt, cause, exitCode, run }: PulseHistoryEntry): unknown[] {
  if (type === 'late') return [type, seconds(at), seconds(endedAt), cause]
  if (type === 'blind') return [type, seconds(at), seconds(endedAt)]
  return [type, seconds(at), ...(run ? [exitCode, run.durationSeconds] : [])]
}
const shortOf = (entries: PulseHistoryEntry[]) => entries.map(short)

test('a monitor that was never pinged has an empty history and no uptime', async (t) => {
  const { page } = await aMonitor(t)
  assert.deepEqual(await page(), {
    uptime: {
      ...{ until: new Date(T).toISOString(), last24Hours: null, last7Days: null, last30Days: null },
    },
    entries: [],
    nextCursor: null,
  })
})

suite('every ping of a life', () => {
  const count = 457

  for (const limit of [1, 7, 100, 200]) {
    test(`each ping of a life is told once, newest first, in pages of ${limit}`, async (t) => {
      const { ping, at, all, page, rowsLeft } = await aMonitor(t)
      for (let i = 0; i < count; i++) {
        at(i)
        assert.ok(await ping())
      }
      const expected = Array.from({ length: count }, (_, i) => ['ping', count - 1 - i])
      assert.deepEqual(shortOf(await all(limit)), expected)
      assert.equal((await page({ limit })).entries.length, limit)
      assert.deepEqual(await rowsLeft(), [4, 0, 0, 0])
    })
  }

  test('pings that come by dozens, through several instances at once and between signals, are told once each', async (t) => {
    const { run, db, ping, at, signal, all, monitor } = await aMonitor(t)
    const instances = [run(db), run(db)]
    await ping()
    let told = 1
    for (let round = 0; round < 12; round++) {
      at(round)
      const recorded = await Promise.all(
        Array.from({ length: 50 }, (_, i) => ping(instances[i % 2])),
      )
      assert.ok(recorded.every(Boolean))
      await signal('start')
      await signal(round)
      told += 51
    }
    const entries = await all(33)
    assert.equal(entries.length - entries.filter(({ type }) => type === 'late').length, told)
    assert.equal(entries.filter(({ run }) => run).length, 12)
    assert.equal((await monitor()).accepted_heartbeat_count, told + 12)
    const times = entries.map(({ at }) => Date.parse(at))
    assert.deepEqual(
      times,
      times.toSorted((a, b) => b - a),
    )
  })

  test('an instance that dies at any point of the ping that fills the row loses and doubles nothing', async (t) => {
    for (const dies of ['before', 'after'] as const) {
      const { run, db, ping, at, all, monitor } = await aMonitor(t)
      for (let i = 0; i < 100; i++) {
        at(i)
        await ping()
      }
      // Each attempt dies one write later than the one before, until a ping is answered.
      let acknowledged = 100
      for (let writes = 0; acknowledged === 100; writes++) {
        let left = writes
        let isDead = false
        const dying: Db = {
          ...db,
          async write(one) {
            if (isDead || left-- === 0) {
              if (dies === 'after' && !isDead) await db.write(one).catch(() => undefined)
              isDead = true
              throw new StoreAway('the instance is dead')
            }
            return db.write(one)
          },
        }
        at(100 + writes)
        if (await ping(run(dying)).catch(() => false)) acknowledged++
        const pings = (await all()).map(({ at }) => at)
        assert.equal(pings.length, (await monitor()).accepted_heartbeat_count)
        assert.equal(new Set(pings).size, pings.length)
      }
    }
  })
})

test('runs have their codes and durations, and a failed one begins a time in which the monitor is late', async (t) => {
  const { ping, signal, at, all } = await aMonitor(t)
  const [one, two] = [randomUUID(), randomUUID()]
  await ping()
  at(10)
  await signal('start', one)
  at(20)
  await signal('start', two)
  at(30)
  await signal(0, one)
  at(45)
  await signal(7, two)
  at(50)
  await signal(null)
  at(60)
  await ping()
  const entries = await all(2)
  assert.deepEqual(shortOf(entries), [
    ['ping', 60],
    ['failed', 50, null, null],
    ['late', 45, 60, 'failure'],
    ['failed', 45, 7, 25],
    ['ping', 30, 0, 20],
    ['ping', 0],
  ])
  assert.deepEqual(
    entries.map(({ run }) => run?.rid ?? null),
    [null, null, null, two, one, null],
  )
})

test('late spells have their ends and causes, the one that lasts among them, stored or not', async (t) => {
  const { pulse, ping, at, all, signal, monitor, page, blind } = await aMonitor(t)
  await ping()
  at(200)
  assert.deepEqual(shortOf(await all()), [
    ['late', 120, null, 'silence'],
    ['ping', 0],
  ])
  await pulse.scan()
  assert.deepEqual(shortOf(await all())[0], ['late', 120, null, 'silence'])
  await ping()
  at(400)
  await signal(1)
  at(600)
  await pulse.scan()
  await pulse.change(await monitor(), { graceSeconds: 90 })
  assert.deepEqual(shortOf(await all(1)), [
    ['late', 400, null, 'failure'],
    ['failed', 400, 1, null],
    ['late', 320, 400, 'silence'],
    ['ping', 200],
    ['late', 120, 200, 'silence'],
    ['ping', 0],
  ])
  blind([10, 20])
  const newest = await page({ limit: 2, type: 'late' })
  assert.deepEqual(shortOf(newest.entries), [
    ['late', 400, null, 'failure'],
    ['late', 320, 400, 'silence'],
  ])
  const oldest = await page({ limit: 2, type: 'late', cursor: newest.nextCursor })
  assert.deepEqual(shortOf(oldest.entries), [['late', 120, 200, 'silence']])
  assert.equal(oldest.nextCursor, null)
})

test('what comes while the pages are read neither repeats nor hides an entry', async (t) => {
  const { ping, at, page, pulse, signal, blind } = await aMonitor(t)
  for (let i = 0; i < 150; i++) {
    at(i)
    await ping()
  }
  at(400)
  await pulse.scan()
  const seen: PulseHistoryEntry[] = []
  let cursor: string | null = null
  let more = 0
  do {
    const { entries, nextCursor }: PulseHistory = await page({ limit: 10, cursor })
    seen.push(...entries)
    assert.ok(seen.length <= 160, 'the pages end')
    cursor = nextCursor
    // Each page is followed by enough pings to move the chunks, by a spell, and by a window of the past.
    for (let i = 0; i < 45; i++) {
      at(500 + more++)
      await ping()
    }
    await signal(1)
    blind([148, 149.5], [410 + more / 100, 411 + more / 100])
  } while (cursor !== null)
  assert.deepEqual(shortOf(seen), [
    ['late', 269, null, 'silence'],
    ...Array.from({ length: 150 }, (_, i) => ['ping', 149 - i]),
  ])
})

test('a monitor that is destroyed while its history is read has none', async (t) => {
  const { ping, pulse, at, monitor, reader } = await aMonitor(t)
  for (let i = 0; i < 150; i++) {
    at(i)
    await ping()
  }
  const read = await monitor()
  await pulse.destroy(read)
  assert.equal(await reader.page(read, { limit: 100, place: null }), null)
})

test('a cursor that the service has not made is none', () => {
  const bad = ['', 'AAAAAAAA', 'MS4x', Buffer.from('1.2.x').toString('base64url')]
  for (const text of ['1.2', '1.2.3.4', '-1.2.3', '01.2.3 ', '01.2.3', `1.2.${'9'.repeat(17)}`]) {
    bad.push(Buffer.from(text).toString('base64url'))
  }
  for (const cursor of bad) assert.equal(placeOf(cursor), null, cursor)
  assert.deepEqual(placeOf(Buffer.from('1.2.3').toString('base64url')), {
    ...{ ping: 1, spellsBefore: 2, windowsBefore: 3 },
  })
})

suite('uptime', () => {
  const share = (value: number): number => Math.floor(value * 1e6) / 1e6

  test('uptime is the share of time without lateness since the first ping, and no period stands twice', async (t) => {
    const { pulse, at, page, pingsFrom, ping } = await aMonitor(t)
    at(50)
    await ping()
    at(3650)
    await pulse.scan()
    await ping()
    const { uptime } = await page()
    assert.deepEqual(uptime, {
      until: new Date(T + 3650 * SECOND).toISOString(),
      last24Hours: share(120 / 3600),
      ...{ last7Days: null, last30Days: null },
    })
    await pingsFrom(3650 + 60, 3650 + 600)
    const { last24Hours } = (await page()).uptime
    assert.equal(last24Hours, share((120 + 540) / (3600 + 540)))
  })

  test('uptime is told for each period that a monitor has lived through in part', async (t) => {
    const { pulse, at, page, ping, monitor } = await aMonitor(t)
    await ping()
    at(0)
    await pulse.change(await monitor(), { expectedIntervalSeconds: 604_800 })
    const day = DAY / SECOND
    // Late from 7 d and a minute on, until 8 d.
    at(7 * day + 60)
    await pulse.scan()
    at(8 * day)
    await ping()
    at(8.5 * day)
    const { last24Hours, last7Days, last30Days } = (await page()).uptime
    assert.equal(last24Hours, share(0.5))
    assert.equal(last7Days, share(1 - (day - 60) / (7 * day)))
    assert.equal(last30Days, share(1 - (day - 60) / (8.5 * day)))
    at(100 * day)
    await pulse.scan()
    assert.deepEqual(Object.values((await page()).uptime).slice(1), [0, 0, 0])
  })

  test('uptime leaves blind windows out of both the time and the lateness, in spells that ended and in one that lasts', async (t) => {
    const { pulse, at, page, ping, blind } = await aMonitor(t)
    await ping()
    at(400)
    await pulse.scan()
    assert.equal((await page()).uptime.last24Hours, share(120 / 400))
    // In the spell, across its beginning, and before it.
    blind([20, 40], [100, 130], [300, 380])
    const seen = 400 - 20 - 30 - 80
    const onTime = 120 - 20 - 20
    assert.equal((await page()).uptime.last24Hours, share(onTime / seen))
    await ping()
    assert.equal((await page()).uptime.last24Hours, share(onTime / seen))
    at(460)
    assert.equal((await page()).uptime.last24Hours, share((onTime + 60) / (seen + 60)))
    // Many more windows than one query looks up.
    blind(...Array.from({ length: 150 }, (_, i): [number, number] => [i * 2, i * 2 + 1]))
    const left = 460 - 150
    const late = 280 - 90
    assert.equal((await page()).uptime.last24Hours, share((left - late) / left))
  })

  test('uptime leaves out a suspension of the monitor, which the history tells', async (t) => {
    const { db, at, page, ping, publicId } = await aMonitor(t)
    await ping()
    at(100)
    await ping()
    await db.write(
      unit({
        text: 'update pulse_monitor set suspensions = $2 where public_id = $1',
        values: [publicId, timeText(T + 130 * SECOND) + timeText(T + 930 * SECOND)],
      }),
    )
    at(1200)
    const { uptime, entries } = await page()
    // An interval and a grace after it.
    assert.deepEqual(shortOf(entries).slice(0, 2), [
      ['late', 1050, null, 'silence'],
      ['blind', 130, 930],
    ])
    assert.equal(uptime.last24Hours, share(250 / 400))
  })

  test('uptime is null if the service was blind all the time', async (t) => {
    const { at, page, ping, blind } = await aMonitor(t)
    await ping()
    at(100)
    blind([-10, 100])
    assert.equal((await page()).uptime.last24Hours, null)
  })

  test('uptime counts a failed run as late until the next success', async (t) => {
    const { at, page, ping, signal } = await aMonitor(t)
    await ping()
    at(50)
    await signal(3)
    at(100)
    assert.equal((await page()).uptime.last24Hours, 0.5)
    await ping()
    assert.equal((await page()).uptime.last24Hours, 0.5)
  })

  test('uptime ends with the monitor, exhausted or expired, and so does its history', async (t) => {
    const exhausted = await aMonitor(t, { heartbeatLimit: 3 })
    await exhausted.ping()
    exhausted.at(50)
    await exhausted.ping()
    exhausted.at(100)
    await exhausted.signal(9)
    exhausted.at(5000)
    exhausted.blind([200, 300])
    const { uptime, entries } = await exhausted.page()
    assert.deepEqual([seconds(uptime.until), uptime.last24Hours], [100, 1])
    assert.deepEqual(shortOf(entries), [
      ['late', 100, 100, 'failure'],
      ['failed', 100, 9, null],
      ['ping', 50],
      ['ping', 0],
    ])
    const expired = await aMonitor(t, { durationSeconds: 1000 })
    await expired.ping()
    expired.at(5000)
    const ended = await expired.page()
    assert.deepEqual(
      [seconds(ended.uptime.until), ended.uptime.last24Hours],
      [1000, share(120 / 1000)],
    )
    assert.deepEqual(shortOf(ended.entries)[0], ['late', 120, 1000, 'silence'])
  })

  test('a page with the uptime takes few reads of few rows, however long the life was', async (t) => {
    const { db, monitor, publicId, at, page, ping } = await aMonitor(t, { heartbeatLimit: 1e6 })
    await ping()
    const times = '1'.repeat(1300)
    for (let position = 0; position < 300; position++) {
      await db.write(
        unit(
          {
            text: 'insert into pulse_ping_chunk (public_id, position, times) values ($1, $2, $3)',
            values: [publicId, position, times],
          },
          {
            text: `insert into pulse_late_spell
              (public_id, began_at, cause, ended_at, ended_by, late_before_ms)
              values ($1, $2, 'silence', $3, 'ping', $4)`,
            values: [publicId, T + position * 10, T + position * 10 + 5, position * 5],
          },
        ),
      )
    }
    await db.write(
      unit({
        text: `update pulse_monitor set chunk_count = 300, late_ms = 1500,
          accepted_heartbeat_count = accepted_heartbeat_count + 30000`,
        values: [],
      }),
    )
    at(100)
    const reads: number[] = []
    const counting: Pick<Db, 'read'> = {
      async read<T>(text: string, ...values: never[]) {
        const rows = (await db.read(text, ...values)) as T[]
        reads.push(rows.length)
        return rows as never
      },
    }
    const reader = createHistoryReader({
      ...{ db: counting, clock: { now: () => T + 100 * SECOND } },
      watch: { fairness: () => ALWAYS_SEEING },
    })
    const found = await reader.page(await monitor(), {
      limit: 200,
      place: { ping: 15_050, spellsBefore: T + 1e9, windowsBefore: T },
    })
    assert.equal(found?.entries.length, 200)
    assert.ok(reads.length <= 4, `${reads.length} reads`)
    assert.ok(Math.max(...reads) <= 201, `${reads} rows`)
    const { last24Hours } = (await page()).uptime
    assert.equal(last24Hours, share(1 - 1.5 / 100))
  })
})

test('the whole history goes with the monitor, however long it is, destroyed or expired', async (t) => {
  for (const isDestroyed of [true, false]) {
    const { db, pulse, ping, at, monitor, purge, rowsLeft, publicId, run } = await aMonitor(t)
    await ping()
    for (let number = 2; number < 2400; number += 100) {
      await db.write(
        unit(
          ...Array.from({ length: 100 }, (_, i) => ({
            text: `insert into pulse_run (public_id, ping_number, rid, started_at, has_failed, exit_code)
              values ($1, $2, null, null, 0, 0)`,
            values: [publicId, number + i],
          })),
        ),
      )
    }
    at(300)
    await pulse.scan()
    // Another monitor keeps its own.
    await db.write(
      unit({
        text: `insert into pulse_ping_chunk (public_id, position, times) values ('pulse_other', 0, '')`,
        values: [],
      }),
    )
    if (isDestroyed) {
      // An instance dies after the monitor is gone, and the next purge goes on.
      let writes = 0
      const dying: Db = {
        ...db,
        write: async (one) => {
          if (writes++ > 1) throw new StoreAway('the instance is dead')
          return db.write(one)
        },
      }
      assert.ok(await run(dying).destroy(await monitor()))
      assert.notDeepEqual(await rowsLeft(), [1, 0, 0, 0])
      await purge()
    } else {
      at((200 * DAY) / SECOND)
      assert.equal(await purge(), 1)
    }
    assert.deepEqual(await rowsLeft(), [1, 0, 0, 0])
  }
})
