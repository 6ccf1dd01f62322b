import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { historyPage, placeOf } from '../../src/pulse/history.ts'
import type { PulseHistory, PulseHistoryEntry } from '../../src/pulse/history-schema.ts'
import { unit } from '../support/unit.ts'
import { aMonitor, DAY, SECOND, shortOf, T } from './history.ts'

test('a monitor that was never pinged has an empty history and no uptime', async (t) => {
  const { page } = await aMonitor(t)
  assert.deepEqual(await page(), {
    uptime: {
      until: new Date(T).toISOString(),
      last24Hours: null,
      last7Days: null,
      last30Days: null,
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
      assert.deepEqual(await rowsLeft(), [count, 0])
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

  test('an instance that dies at any point of a ping loses and doubles nothing', async (t) => {
    for (const dies of ['before', 'after'] as const) {
      const { run, db, ping, at, all, monitor } = await aMonitor(t)
      await ping()
      // Each attempt dies one write later than the one before, until a ping is answered.
      let acknowledged = 1
      for (let writes = 0; acknowledged === 1; writes++) {
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
        at(1 + writes)
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
    // Each page is followed by pings, by a spell, and by a window of the past.
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
  const { ping, pulse, at, monitor, db, clock } = await aMonitor(t)
  for (let i = 0; i < 150; i++) {
    at(i)
    await ping()
  }
  const read = await monitor()
  await pulse.destroy(read)
  assert.equal(await historyPage({ db, clock }, read, { limit: 100, place: null }), null)
})

test('a cursor that the service has not made is none', () => {
  const bad = ['', 'AAAAAAAA', 'MS4x', Buffer.from('1.2.x').toString('base64url')]
  for (const text of ['1.2', '1.2.3.4', '-1.2.3', '01.2.3 ', '01.2.3', `1.2.${'9'.repeat(17)}`]) {
    bad.push(Buffer.from(text).toString('base64url'))
  }
  for (const cursor of bad) assert.equal(placeOf(cursor), null, cursor)
  assert.deepEqual(placeOf(Buffer.from('1.2.3').toString('base64url')), {
    ping: 1,
    spellsBefore: 2,
    windowsBefore: 3,
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
            text: 'insert into pulse_ping (public_id, number, at) values ($1, $2, $3)',
            values: [publicId, number + i, T],
          })),
        ),
      )
    }
    at(300)
    await pulse.scan()
    // Another monitor keeps its own.
    await db.write(
      unit({
        text: `insert into pulse_ping (public_id, number, at) values ('pulse_other', 1, $1)`,
        values: [T],
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
      assert.notDeepEqual(await rowsLeft(), [1, 0])
      await purge()
    } else {
      at((200 * DAY) / SECOND)
      assert.equal(await purge(), 1)
    }
    assert.deepEqual(await rowsLeft(), [1, 0])
  }
})
