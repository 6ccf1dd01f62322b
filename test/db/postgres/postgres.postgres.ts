import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Db, StoreError, StoreUnusable, type Value } from '../../../src/db/db.ts'
import { openStore } from '../../../src/db/open.ts'
import { connect, settingsOf } from '../../../src/db/postgres/connection.ts'
import { openPostgres } from '../../../src/db/postgres/postgres.ts'
import { primaryOf } from '../../../src/db/postgres/sessions.ts'
import type { After } from '../../support/folder.ts'
import { aPostgresDatabase, startPostgres } from '../../support/postgres.ts'
import { refusedStart, startProgram } from '../../support/program.ts'
import { query } from '../../support/store.ts'
import { unit } from '../../support/unit.ts'

const note = (name: string, value = 'x') => ({
  text: 'insert into meta (name, value) values ($1, $2)',
  values: [name, value],
})

async function open(t: After, url: string): Promise<Db> {
  const db = await openStore({ kind: 'postgres', url })
  t.after(() => db.close())
  return db
}

/** Ends every other connection to the database, as a restart of the server would. */
const cutOff = (databaseUrl: string) =>
  query(
    { databaseUrl },
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  )

test('all of four programs that start at once on an empty database come up', async (t) => {
  const url = await aPostgresDatabase()
  const programs = await Promise.all([1, 2, 3, 4].map(() => startProgram(t, url)))
  const answers = await Promise.all(programs.map((program) => fetch(`${program.url}/health`)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  for (const program of programs) assert.ok(!program.told().includes('mayfly:mayfly'))
  const [row] = await query({ databaseUrl: url }, 'select count(*) as n from migration')
  const [once] = await query(
    { databaseUrl: url },
    'select count(distinct version) as n from migration',
  )
  assert.equal(row?.n, once?.n)
})

test('an instance that stands still between a write and its commit lets the writes of others through', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  await db.write(unit(note('shared')))
  const text = "update meta set value = $1 where name = 'shared'"
  const standing = await primaryOf(url).slot().connection()
  t.after(() => standing.drop())
  await standing.send([
    { text: 'begin', values: [] },
    { text, values: ['y'] },
  ])
  await db.write(unit({ text, values: ['z'] }))
  const [row] = await query({ databaseUrl: url }, "select value from meta where name = 'shared'")
  assert.equal(row?.value, 'z')
})

test('a statement that PostgreSQL does not support fails alone: neither its neighbours nor the connection', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  const text = 'select name from meta union select name from meta for update'
  const pid = async () =>
    (await db.write(unit({ text: 'select pg_backend_pid() as pid', values: [] }))).all[0]
  const before = await pid()
  const [unsupported, ...others] = await Promise.allSettled([
    db.write(unit({ text, values: [] })),
    db.write(unit(note('a'))),
    db.write(unit(note('b'))),
  ])
  assert.match(String(unsupported?.status === 'rejected' && unsupported.reason), /0A000/)
  assert.deepEqual(
    others.map(({ status }) => status),
    ['fulfilled', 'fulfilled'],
  )
  assert.deepEqual(await pid(), before)
})

test('a plan that a migration has outdated is made again, and nobody notices', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  await db.write(unit(note('a', '7')))
  const text = 'select value from meta where name = $1'
  const read = () => db.read(text, 'a')
  const inUnit = async () => (await db.write(unit({ text, values: ['a'] }))).all
  for (let i = 0; i < 8; i++) await Promise.all([read(), inUnit()])
  await query(
    { databaseUrl: url },
    'alter table meta alter column value type bigint using value::bigint',
  )
  for (const rows of [await read(), await inUnit()]) {
    assert.deepEqual(
      rows.map(({ value }) => String(value)),
      ['7'],
    )
  }
})

test('a connection that drops while idle is replaced, and nobody notices', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  await Promise.all([db.write(unit(note('a'))), db.read('select 1 as n')])
  await cutOff(url)
  await Promise.all([db.write(unit(note('b'))), db.read('select 1 as n')])
  assert.equal((await db.read('select name from meta')).length, 2)
})

test('a row is found by its index even if its table was small when the plan was made', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  await db.write(unit(note('a')))
  // Now PostgreSQL knows that a scan of the whole table is one page.
  await query({ databaseUrl: url }, 'analyze meta')
  const plan = await db.read('explain select value from meta where name = $1', 'a')
  assert.match(String(plan[0]?.['QUERY PLAN']), /^Index Scan/)
})

test('a statement stays prepared once, whichever of its values are null', async (t) => {
  const connection = await connect(settingsOf(await aPostgresDatabase()))
  t.after(() => connection.end())
  const text = 'select coalesce($1, 0) + 0 as n, coalesce($2, $3) as text'
  const asked: Value[][] = [
    [null, null, 'a'],
    [1, null, null],
    [null, 'b', null],
    [2, null, null],
    [null, null, null],
    [3, 'c', 'd'],
  ]
  // In one pipeline, and in one each.
  for (const rows of [asked, ...asked.map((values) => [values])]) {
    const { results, failure } = await connection.send(rows.map((values) => ({ text, values })))
    assert.equal(failure, null)
    assert.deepEqual(
      results.map((result) => result.rows[0]),
      rows.map(([n, first, second]) => ({ n: n ?? 0, text: first ?? second })),
    )
  }
  const { results } = await connection.send([
    {
      text: 'select name from pg_prepared_statements where statement = $1',
      values: [text],
    },
  ])
  // The third knows all types. The two before it were replaced.
  assert.deepEqual(
    results[0]?.rows.map(({ name }) => String(name).replace(/^m[0-9a-f]{12}_/, '')),
    ['3'],
  )
})

test('no two connections give a statement the same name, since a pooler might mix them up', async (t) => {
  const url = await aPostgresDatabase()
  const names = await Promise.all(
    [1, 2].map(async () => {
      const connection = await connect(settingsOf(url))
      t.after(() => connection.end())
      const text = 'select name from pg_prepared_statements'
      const { results } = await connection.send([{ text, values: [] }])
      return String(results[0]?.rows[0]?.name)
    }),
  )
  assert.match(names.join(), /^m[0-9a-f]{12}_1,m[0-9a-f]{12}_1$/)
  assert.notEqual(names[0], names[1])
})

test('units that a lost connection took with it happen once', async (t) => {
  const url = await aPostgresDatabase()
  const db = await open(t, url)
  const blocker = await connect(settingsOf(url))
  await db.write(unit(note('held', '0')))
  await blocker.send([
    { text: 'begin', values: [] },
    { text: `update meta set value = 'taken' where name = 'held'`, values: [] },
  ])
  const count = { text: `update meta set value = value || '1' where name = 'held'`, values: [] }
  const writing = db.write(unit(count))
  // Once the unit waits for the lock, its transaction has begun. It is gone before the lock is free: with the lock it
  // would go on to its commit, and lose the connection there.
  const cut = `select cast(pg_terminate_backend(pid, 10000) as text) as ended from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()`
  let ended: unknown[] = []
  while (ended.length === 0) ended = await query({ databaseUrl: url }, cut)
  assert.deepEqual(ended, [{ ended: 'true' }])
  await blocker.send([{ text: 'rollback', values: [] }])
  assert.deepEqual(await writing, { all: [] })
  assert.deepEqual(await db.read(`select value from meta where name = 'held'`), [{ value: '01' }])
  await blocker.end()
})

test('a flushed unit is on the disk when it resolves', async (t) => {
  const db = await open(t, await aPostgresDatabase())
  const end = { text: 'select cast(pg_current_wal_insert_lsn() as text) as lsn', values: [] }
  const { all } = await db.write(unit(note('a'), end))
  const [{ flushed } = {}] = await db.read(
    `select case when pg_current_wal_flush_lsn() >= cast($1 as pg_lsn) then 'yes' else 'no' end
       as flushed`,
    String(all[0]?.lsn),
  )
  assert.equal(flushed, 'yes')
})

test('two stores whose units lock the same rows in opposite orders both get through', async (t) => {
  const url = await aPostgresDatabase()
  const [one, other] = [await open(t, url), await open(t, url)]
  await one.write(unit(note('a', ''), note('b', '')))
  const both = (names: string[]) =>
    names.map((name) => ({
      text: `update meta set value = value || '1' where name = $1`,
      values: [name],
      expect: 1,
    }))
  await Promise.all(
    Array.from({ length: 5 }, () => [
      one.write(unit(...both(['a', 'b']))),
      other.write(unit(...both(['b', 'a']))),
    ]).flat(),
  )
  const rows = await one.read(`select length(value) as n from meta where name in ('a', 'b')`)
  assert.deepEqual(rows, [{ n: 10 }, { n: 10 }])
})

test('an error quotes no value', async (t) => {
  const db = await open(t, await aPostgresDatabase())
  await db.write(unit(note('hunter2')))
  await assert.rejects(db.write(unit(note('hunter2'))), (error: Error) => {
    assert.ok(error instanceof StoreError)
    assert.ok(!JSON.stringify([error.message, error.stack, error.cause]).includes('hunter2'))
    return true
  })
})

suite('a server that is away', () => {
  test('a server that is away is waited for at the start, and found again each time that it comes back', async (t) => {
    const server = await startPostgres(t)
    const url = await server.createDatabase()
    await server.stop()
    const reasons: string[] = []
    const opening = openStore(
      { kind: 'postgres', url },
      {
        onWaiting: (reason) => {
          reasons.push(reason)
          void server.start()
        },
      },
    )
    const db = await opening
    t.after(() => db.close())
    assert.match(
      reasons.join(),
      /^PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached: connection refused\./,
    )
    await db.write(unit(note('a')))
    await server.stop()
    await assert.rejects(db.write(unit(note('b'))), StoreError)
    await assert.rejects(db.read('select 1 as n'), StoreError)
    await server.start()
    await db.write(unit(note('c')))
    // It was back, so what comes while it restarts waits for it again, which would end by this clock.
    await server.stop()
    const now = Date.now()
    t.mock.method(Date, 'now', () => now)
    const writing = db.write(unit(note('d')))
    await server.start()
    await writing
    assert.deepEqual(await db.read('select name from meta order by name'), [
      { name: 'a' },
      { name: 'c' },
      { name: 'd' },
    ])
  })

  test('a server that lets the store in no more, or takes no writes, counts as away until that is mended', async (t) => {
    const databaseUrl = await aPostgresDatabase()
    const url = new URL(databaseUrl)
    url.username = `user_of_${url.pathname.slice(1)}`
    const role = (change: string) =>
      query({ databaseUrl }, change.replace(' it ', ` ${url.username} `))
    await role(`create role it login superuser password 'mayfly'`)
    const db = await open(t, url.href)
    const tried = async (): Promise<string[]> => {
      await cutOff(databaseUrl)
      const results = await Promise.allSettled([
        db.read('select 1 as n'),
        db.write(unit(note('a'))),
      ])
      return results.map((one) => (one.status === 'rejected' ? one.reason.name : 'done'))
    }
    await role(`alter role it password 'another'`)
    assert.deepEqual(await tried(), ['StoreAway', 'StoreAway'])
    await role(`alter role it password 'mayfly'`)
    await role('alter role it set default_transaction_read_only = on')
    assert.deepEqual(await tried(), ['done', 'StoreAway'])
    await role('alter role it reset default_transaction_read_only')
    assert.deepEqual(await tried(), ['done', 'done'])
  })

  test('a server that is away stops a start with a sentence', async () => {
    await assert.rejects(
      openPostgres('postgres://mayfly:hunter2@127.0.0.1:1/mayfly', { startWithinMs: 0 }),
      new StoreUnusable(
        'PostgreSQL at 127.0.0.1:1 cannot be reached: connection refused. Check MAYFLY_DATABASE_URL.',
        { isAway: true },
      ),
    )
  })
})

suite('a start on PostgreSQL that cannot be used', () => {
  /** What is wrong with a database, or with its URL, and what the operator reads. */
  const UNUSABLE: Record<string, [spoil: (url: URL) => unknown, told: RegExp]> = {
    'a wrong password': [
      (url) => Object.assign(url, { password: 'hunter2' }),
      /^PostgreSQL at host refuses the user or the password of MAYFLY_DATABASE_URL\.$/,
    ],
    'a missing database': [
      (url) => Object.assign(url, { pathname: '/nowhere' }),
      /^PostgreSQL at host has no database nowhere\. Create it: createdb nowhere\.$/,
    ],
    'a user that may not make tables': [
      async (url) => {
        await run(url, `create role reader_only login password 'hunter2'`)
        Object.assign(url, { username: 'reader_only', password: 'hunter2' })
      },
      /permission denied for schema public/,
    ],
    'a read-only database': [
      (url) =>
        run(url, `alter database ${url.pathname.slice(1)} set default_transaction_read_only = on`),
      /^The database is read-only/,
    ],
    'an encoding other than UTF8': [
      async (url) => {
        await run(url, `create database latin encoding 'LATIN1' template template0 locale 'C'`)
        Object.assign(url, { pathname: '/latin' })
      },
      /^The database has the encoding LATIN1\./,
    ],
  }
  const run = ({ href }: URL, text: string) => query({ databaseUrl: href }, text)
  for (const [what, [spoil, told]] of Object.entries(UNUSABLE)) {
    test(`${what} stops the start with a sentence, without the password`, async () => {
      const url = new URL(await aPostgresDatabase())
      await spoil(url)
      await assert.rejects(openStore({ kind: 'postgres', url: url.href }), (error) => {
        assert.ok(error instanceof StoreUnusable, String(error))
        assert.doesNotMatch(error.message, /hunter2/)
        assert.match(error.message.replace(/127\.0\.0\.1:\d+/, 'host'), told)
        return true
      })
    })
  }

  test('a missing secret stops the start with a sentence', async (t) => {
    const url = await aPostgresDatabase()
    const { code, told } = await refusedStart(t, url, { environment: { MAYFLY_SECRET: '' } })
    assert.equal(code, 2)
    assert.match(told, /MAYFLY_SECRET must be set with PostgreSQL/)
    assert.ok(!told.includes('mayfly:mayfly'))
  })
})
