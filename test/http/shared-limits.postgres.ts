import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { INGEST } from '../../src/catch/limits.ts'
import type { Db } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { type Bucket, LIMITS, type Limit } from '../../src/http/limits.ts'
import { createSharedLimits, purgeLimits } from '../../src/http/shared-limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { duringChange } from '../support/locks.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const SECRET = new Uint8Array(32).fill(7)
const HOURLY = { perMinute: 0.5, burst: 30 }

test('what one instance has let through counts at the others', async (t) => {
  const { buckets, sql } = await instances(t, 2)
  const [a, b] = buckets(INGEST.spark)
  for (let i = 0; i < 30; i++) assert.equal((await a('catch_x')).isRefused, false)
  // It would let 30 through by itself: it tells, and learns, at a fifth of them.
  for (let i = 0; i < 6; i++) assert.equal((await b('catch_x')).isRefused, false)
  await until('it has told', async () => {
    const rows = await sql('select points from rate_limit')
    assert.deepEqual(rows, [{ points: '36' }])
    return true
  })
  // The answer is on its way, and with it the count of the other.
  let accepted = 0
  await until(
    'it has learnt',
    async () => {
      const { isRefused } = await b('catch_x')
      if (!isRefused) accepted++
      return isRefused
    },
    { everyMs: 100 },
  )
  assert.ok(accepted < 24, `${accepted}`)
  assert.ok((await b('catch_x')).msLeft > 3_500_000)
  assert.equal((await b('catch_y')).remaining, 29)
})

test('a client who is refused costs the store nothing more', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  const [a] = buckets(LIMITS.poll)
  for (let i = 0; i < 40; i++) await a('order_x')
  for (let i = 0; i < 6; i++) await a('order_y')
  await until('both are told of', async () => {
    const rows = await sql('select points from rate_limit order by points')
    assert.deepEqual(rows, [{ points: '6' }, { points: '30' }])
    return true
  })
})

test('a row names nobody', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  const [a] = buckets(LIMITS.catalog)
  for (let i = 0; i < 6; i++) await a('203.0.113.7')
  await until('it is told of', async () => {
    const [row] = await sql('select key from rate_limit')
    assert.match(String(row?.key), /^catalog:[\w-]{22}$/)
    return true
  })
})

test('a window that is over counts no more', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  const [a] = buckets(LIMITS.poll)
  const points = async () => (await sql('select points from rate_limit'))[0]?.points
  for (let i = 0; i < 6; i++) await a('order_x')
  await until('it is told of', async () => (await points()) === '6')
  await sql('update rate_limit set expire = 1, points = 30')
  const { remaining } = await a('order_x')
  assert.equal(remaining, 23)
  await until('it is told of again', async () => (await points()) === '1')
})

test('the count of a client who stays far below a limit is never shared', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  const [a] = buckets(INGEST.spark)
  for (let i = 0; i < 5; i++) await a('catch_quiet')
  for (let i = 0; i < 6; i++) await a('catch_loud')
  await until('the loud one is told of', async () => {
    const rows = await sql('select points from rate_limit')
    assert.deepEqual(rows, [{ points: '6' }])
    return true
  })
})

test('windows that are over are forgotten, and no others', async (t) => {
  const { sql, db } = await instances(t, 1)
  await sql(`insert into rate_limit values ('poll:x', 1, ${Date.now() + 60_000})`)
  await sql(
    `insert into rate_limit select 'poll:' || n, 1, 1000 + n from generate_series(1, 2500) as n`,
  )
  await purgeLimits(db, 3_000)
  assert.deepEqual(await sql('select count(*)::int as left from rate_limit'), [{ left: 502 }])
  await purgeLimits(db, Date.now())
  assert.deepEqual(await sql('select count(*)::int as left from rate_limit'), [{ left: 1 }])
})

type Shared = {
  /** The bucket of a limit on each instance. */
  buckets(limit: Limit): [Bucket, Bucket, Bucket]
  sql(text: string): Promise<Record<string, unknown>[]>
  db: Db
  reports: string[]
}

async function instances(t: TestContext, many: number): Promise<Shared> {
  const url = await aPostgresDatabase()
  const db = await openStore({ kind: 'postgres', url })
  t.after(() => db.close())
  const client = new Client(url)
  await client.connect()
  t.after(() => client.end())
  const reports: string[] = []
  const all = Array.from({ length: many }, () =>
    createSharedLimits({
      db,
      clock: systemClock,
      secret: SECRET,
      onAway: (reason) => reports.push(reason),
      onBack: () => reports.push('back'),
    }),
  )
  t.after(() => all.map((limits) => limits.close()))
  return {
    buckets: (limit) =>
      all.map(({ openBucket }) => openBucket({ ...limit, ...HOURLY })) as [Bucket, Bucket, Bucket],
    sql: async (text) => (await client.query(text)).rows,
    db,
    reports,
  }
}

test('a count that another instance has begun anew while it is deleted stays', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const db = await openStore({ kind: 'postgres', url: databaseUrl })
  t.after(() => db.close())
  await db.write({
    lockKey: 'rate_limit',
    statements: {
      over: { text: `insert into rate_limit values ('a', 9, 1), ('b', 9, 1)`, values: [] },
    },
  })
  const anew = { text: `update rate_limit set points = 1, expire = 9 where key = 'b'`, values: [] }
  await duringChange(t, { databaseUrl, change: [anew] }, () => purgeLimits(db, 2))
  assert.deepEqual(await db.read('select key, points from rate_limit'), [{ key: 'b', points: 1 }])
})
