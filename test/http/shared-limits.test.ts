import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { INGEST } from '../../src/catch/limits.ts'
import type { Db } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { primaryOf } from '../../src/db/postgres/primary.ts'
import { type Bucket, LIMITS, type Limit } from '../../src/http/limits.ts'
import { openSharedLimits, purgeLimits } from '../../src/http/shared-limits.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const SECRET = new Uint8Array(32).fill(7)
const HOURLY = { perMinute: 0.5, burst: 30 }

test('a burst counts for all instances, however it is split and however much comes at once', async (t) => {
  const { buckets } = await instances(t, 3)
  const [a, b, c] = buckets(LIMITS.poll)
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => [a, b, c][i % 3]?.('order_x')),
  )
  assert.equal(answers.filter((answer) => answer?.isRefused === false).length, 30)
  const refused = answers.filter((answer) => answer?.isRefused)
  assert.ok(refused.every((answer) => (answer?.msBeforeNext ?? 0) > 3_500_000))
  assert.equal((await b('order_y')).remainingPoints, 29)
})

test('a client who is refused costs the store nothing more', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  const [a] = buckets(LIMITS.poll)
  for (let i = 0; i < 40; i++) await a('order_x')
  assert.deepEqual(await sql('select points from rate_limit'), [{ points: '30' }])
})

test('a row names nobody', async (t) => {
  const { buckets, sql } = await instances(t, 1)
  await buckets(LIMITS.catalog)[0]('203.0.113.7')
  const [row] = await sql('select key from rate_limit')
  assert.match(String(row?.key), /^catalog:[\w-]{22}$/)
})

test('a limit whose requests are writes themselves is shared afterwards', async (t) => {
  const { buckets } = await instances(t, 2)
  const [a, b] = buckets(INGEST.spark)
  for (let i = 0; i < 30; i++) assert.equal((await a('catch_x')).isRefused, false)
  let accepted = 0
  await until(
    'the other one refuses, too',
    async () => {
      const { isRefused } = await b('catch_x')
      if (!isRefused) accepted++
      return isRefused
    },
    // As often as they tell each other.
    { everyMs: 100 },
  )
  // It would have let 30 through by itself: it learns at a fifth of its own.
  assert.ok(accepted < 25, `${accepted}`)
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

test('an instance counts by itself while the store is away, and says so once', async (t) => {
  const { buckets, sql, reports } = await instances(t, 1)
  const [a] = buckets(LIMITS.poll)
  await sql('alter table rate_limit rename to away')
  const answers = []
  for (let i = 0; i < 31; i++) answers.push((await a('order_x')).isRefused)
  assert.deepEqual(answers, [...Array(30).fill(false), true])
  assert.equal(reports.length, 1)
  await sql('alter table away rename to rate_limit')
  await until('it is shared again', async () => {
    await a('order_y')
    return reports.at(-1) === 'back'
  })
  assert.equal(reports.length, 2)
})

test('windows that are over are forgotten, and no others', async (t) => {
  const { buckets, sql, db } = await instances(t, 1)
  await buckets(LIMITS.poll)[0]('order_x')
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
    openSharedLimits(primaryOf(url), SECRET, {
      onAway: (reason) => reports.push(reason),
      onBack: () => reports.push('back'),
    }),
  )
  t.after(() => Promise.all(all.map((limits) => limits.close())))
  // With their connections made, since no answer is waited for longer than a second.
  await until('all of them count in the store', async () => {
    const warming = all.map(({ openBucket }) => openBucket({ ...LIMITS.catalog, ...HOURLY }))
    await Promise.all(Array.from({ length: 4 * many }, (_, i) => warming[i % many]?.(`warm ${i}`)))
    return reports.length === 0 || reports.at(-1) === 'back'
  })
  await client.query('delete from rate_limit')
  reports.length = 0
  return {
    buckets: (limit) =>
      all.map(({ openBucket }) => openBucket({ ...limit, ...HOURLY })) as [Bucket, Bucket, Bucket],
    sql: async (text) => (await client.query(text)).rows,
    db,
    reports,
  }
}
