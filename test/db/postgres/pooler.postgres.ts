/** A pooler in front of PostgreSQL. The drills (`npm run drill:pgbouncer`) ask the same of PgBouncer itself. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { StoreUnusable } from '../../../src/db/db.ts'
import { openPostgres, type PostgresOptions } from '../../../src/db/postgres/postgres.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { ownedTimers } from '../../support/timers.ts'
import { type PoolerOptions, startPooler } from './pooler.ts'

const SHARED = new StoreUnusable(
  'A pooler in front of PostgreSQL gives each transaction another session. ' +
    'Mayfly needs sessions of its own: set pool_mode = session, or connect to the server itself.',
)

async function opened(t: TestContext, url: string, options: PostgresOptions = {}) {
  const db = await openPostgres(url, { startWithinMs: 0, ...options })
  t.after(() => db.close())
  return db
}

const pooled = async (t: TestContext, options: PoolerOptions) =>
  startPooler(t, await aPostgresDatabase(), options)

suite('a pooler that shares sessions', () => {
  const mode = 'transaction'
  const inTurn = { mode, next: 'each in turn' } as const
  const ways: [string, PoolerOptions][] = [
    ['in statement mode', { mode: 'statement' }],
    ['in transaction mode', { mode }],
    ['in transaction mode with one session', { mode, sessions: 1 }],
    ['in transaction mode that has two idle sessions', { mode, warm: 2 }],
    ['in transaction mode that keeps prepared statements', { mode, statements: 'prepared' }],
    ...[2, 4].map((warm): [string, PoolerOptions] => [
      `in transaction mode that lends ${warm} idle sessions in turn`,
      { ...inTurn, warm },
    ]),
    ...[2, 4].map((warm): [string, PoolerOptions] => [
      `in transaction mode that lends ${warm} idle sessions in turn, and keeps prepared statements`,
      { ...inTurn, warm, statements: 'prepared' },
    ]),
  ]
  for (const [which, options] of ways) {
    test(`a start is refused through a pooler ${which}`, async (t) => {
      const { url } = await pooled(t, options)
      await assert.rejects(opened(t, url), SHARED)
    })
  }
})

suite('a pooler that keeps sessions', () => {
  test('a store works through a pooler in session mode, and asks each connection once whether there is one', async (t) => {
    const { url, runs } = await pooled(t, { mode: 'session' })
    const db = await opened(t, `${url}?pool=4`, { besides: 1 })
    // The connection of the start, the one that it is compared with, and one that only takes a session.
    assert.deepEqual(runs('pg_backend_pid()').slice(0, 2), [1, 1])
    await db.tx((tx) => tx.run('create table note (text text)'))
    assert.deepEqual(await db.read('select text from note'), [])
  })

  test('a pooler with one session is too small, which a start says', async (t) => {
    const { url, waiting } = await pooled(t, { mode: 'session', sessions: 1 })
    const timers = ownedTimers(t)
    const outcome = opened(t, url).catch((error: unknown) => error)
    await timers.noSweep(() => waiting() === 1)
    const now = performance.now.bind(performance)
    const later = t.mock.method(performance, 'now', () => now() + 3_600_000)
    t.mock.timers.tick(3_000)
    later.mock.restore()
    assert.deepEqual(await outcome, tooFew('not even two came. Raise its default_pool_size.'))
  })

  test('a pooler with fewer sessions than a process may need is too small, and a start says how many it needs', async (t) => {
    const { url } = await pooled(t, { mode: 'session', sessions: 5, others: 'go' })
    await assert.rejects(
      opened(t, `${url}?pool=4`, { besides: 3 }),
      tooFew(
        'this instance needs 7 at once, and 5 came. Raise its default_pool_size to 7 for each instance ' +
          'and one to spare, or lower `pool` in MAYFLY_DATABASE_URL.',
      ),
    )
  })
})

const tooFew = (what: string): StoreUnusable =>
  new StoreUnusable(`The pooler in front of PostgreSQL gives out too few sessions: ${what}`)
