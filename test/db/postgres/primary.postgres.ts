import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Db, StoreAway, StoreUnusable } from '../../../src/db/db.ts'
import { openStore } from '../../../src/db/open.ts'
import { openPostgresHints } from '../../../src/db/postgres/hints.ts'
import { openPostgres } from '../../../src/db/postgres/postgres.ts'
import { fixedAddress } from '../../support/address.ts'
import { type After, temporaryFolder } from '../../support/folder.ts'
import { holding, waits } from '../../support/locks.ts'
import { startPostgres } from '../../support/postgres.ts'
import { type PostgresServer, startPostgresServer } from '../../support/postgres-server.ts'
import { query } from '../../support/store.ts'
import { ownedTimers } from '../../support/timers.ts'
import { unit } from '../../support/unit.ts'
import { until } from '../../support/until.ts'

async function open(t: After, url: string): Promise<Db> {
  const db = await openStore({ kind: 'postgres', url })
  t.after(() => db.close())
  return db
}

const note = (name: string) =>
  unit({ text: `insert into meta (name, value) values ($1, 'x')`, values: [name] })

const notesAt = async (databaseUrl: string) =>
  (await query({ databaseUrl }, `select name from meta where value = 'x' order by name`)).map(
    ({ name }) => name,
  )

/** All connections of Mayfly to the server of this URL. */
const USED = `select application_name as name from pg_stat_activity
  where application_name like 'mayfly%' and pid <> pg_backend_pid()`

const cutOff = (databaseUrl: string, which = 'true') =>
  query(
    { databaseUrl },
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and ${which}`,
  )

suite('a primary and its standby', () => {
  test('the server that takes writes is used, whichever is named first, and the other one is left', async (t) => {
    const { primary, standby, both } = await aPrimaryAndItsStandby(t)
    for (const [name, url] of [
      ['a', both(primary, standby)],
      ['b', both(standby, primary)],
    ] as const) {
      const db = await open(t, url)
      await db.write(note(name))
    }
    assert.deepEqual(await notesAt(primary), ['a', 'b'])
    assert.deepEqual(await notesAt(standby), [])
    const left = async () => (await query({ databaseUrl: standby }, USED)).length === 0
    await until('no connection stays with the standby', left)
  })

  test('a standby alone stops a start with a sentence', async (t) => {
    const { standby, servers } = await aPrimaryAndItsStandby(t)
    const place = `127.0.0.1:${servers.standby.port}`
    await assert.rejects(
      openPostgres(standby, { startWithinMs: 0 }),
      new StoreUnusable(
        `PostgreSQL at ${place} cannot be used: PostgreSQL at ${place} is a standby.`,
        { isAway: true },
      ),
    )
  })

  test('where no server is the primary, a start says of each why not', async (t) => {
    const { standby, servers } = await aPrimaryAndItsStandby(t)
    const url = standby.replace('127.0.0.1:', '127.0.0.1:1,127.0.0.1:')
    const place = `127.0.0.1:${servers.standby.port}`
    await assert.rejects(
      openPostgres(url, { startWithinMs: 0 }),
      new StoreUnusable(
        `PostgreSQL at 127.0.0.1:1, ${place} cannot be used: no server is the primary ` +
          `(127.0.0.1:1: connection refused; PostgreSQL at ${place} is a standby).`,
        { isAway: true },
      ),
    )
  })

  test('a store follows to the server that has taken over, with every connection', async (t) => {
    const { primary, standby, servers, both, promote } = await aPrimaryAndItsStandby(t)
    const db = await open(t, both(primary, standby))
    await db.write(note('before'))
    await servers.primary.stop()
    await assert.rejects(db.read('select 1 as one'), StoreAway)
    await promote()
    await db.write(note('after'))
    assert.deepEqual(await notesAt(standby), ['after'])
    assert.deepEqual(await db.read(`select name from meta where value = 'x'`), [{ name: 'after' }])
  })

  test('once another server has taken over, no connection stays with the former one, although it lives', async (t) => {
    const { primary, standby, both, promote } = await aPrimaryAndItsStandby(t)
    const url = both(primary, standby)
    const db = await open(t, url)
    const hints = await openPostgresHints(url, { hasOthers: () => true, onLost() {}, onBack() {} })
    t.after(() => hints.close())
    await Promise.all(Array.from({ length: 20 }, () => db.read('select pg_sleep(0.02)')))
    await db.write(note('before'))
    assert.ok((await query({ databaseUrl: primary }, USED)).length > 9)
    await promote()
    // One connection is lost, and finds the new primary; the others were idle.
    await cutOff(
      primary,
      `pid = (select min(pid) from pg_stat_activity where application_name = 'mayfly' and pid <> pg_backend_pid())`,
    )
    await until('the former primary is left', async () => {
      await Promise.all([
        db.write(unit({ text: `update meta set value = 'y' where value = 'nobody'`, values: [] })),
        ...Array.from({ length: 20 }, () => db.read('select pg_sleep(0.02)')),
      ])
      return (await query({ databaseUrl: primary }, USED)).length === 0
    })
    await db.write(note('after'))
    assert.deepEqual([await notesAt(primary), await notesAt(standby)], [['before'], ['after']])
    assert.deepEqual(await query({ databaseUrl: primary }, USED), [])
  })

  test('a server that has not answered for three seconds is suspected each time, and its work goes to the one that has taken over', async (t) => {
    const { primary, standby, both, promote } = await aPrimaryAndItsStandby(t)
    const db = await open(t, both(primary, standby))
    await db.write(note('before'))
    const pass = (ms: number): void => {
      const now = performance.now.bind(performance)
      const later = t.mock.method(performance, 'now', () => now() + ms)
      t.mock.timers.tick(ms)
      later.mock.restore()
    }
    const end = await holding(t, primary, 'lock table meta')
    const timers = ownedTimers(t)
    const slow = db.write(note('slow'))
    await timers.noSweep(() => waits(primary))
    pass(3_000)
    await end()
    await slow
    timers.release()
    await promote()
    await holding(t, primary, 'lock table meta')
    ownedTimers(t)
    const writing = db.write(note('after'))
    await timers.noSweep(() => waits(primary))
    pass(3_000)
    await writing
    assert.deepEqual(await notesAt(standby), ['after'])
  })

  test('a start uses the server that was promoted last, if two take writes', async (t) => {
    const { primary, standby, both, promote } = await aPrimaryAndItsStandby(t)
    await promote()
    const db = await open(t, both(primary, standby))
    await db.write(note('a'))
    assert.deepEqual([await notesAt(primary), await notesAt(standby)], [[], ['a']])
  })

  test('an address that leads back to a server that was taken over from counts as away, for reads too', async (t) => {
    const { primary, standby, servers, promote } = await aPrimaryAndItsStandby(t)
    const address = await fixedAddress(t, servers.primary.port)
    const db = await open(t, primary.replace(/:\d+\//, `:${address.port}/`))
    await db.write(note('first'))
    await promote()
    address.moveTo(servers.standby.port)
    await db.write(note('second'))
    address.moveTo(servers.primary.port)
    await assert.rejects(db.write(note('third')), StoreAway)
    await assert.rejects(db.read('select 1 as one'), StoreAway)
    address.moveTo(servers.standby.port)
    await db.write(note('fourth'))
    assert.deepEqual(await notesAt(primary), ['first'])
    assert.deepEqual(await notesAt(standby), ['fourth', 'second'])
  })
})

test('a commit whose wait for its standby somebody has ended is not said to have happened', async (t) => {
  const server = await startPostgres(t)
  const url = await server.createDatabase()
  const db = await open(t, url)
  const migrating = await openPostgres(url)
  t.after(() => migrating.close())
  const setNames = async (names: string): Promise<void> => {
    await query({ databaseUrl: url }, `alter system set synchronous_standby_names = '${names}'`)
    await query({ databaseUrl: url }, 'select pg_reload_conf()')
  }
  const waiting = `select pid from pg_stat_activity where wait_event = 'SyncRep'`
  const cancel = `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`
  /** What became of the first write that waited. The server takes a setting over some time after it was asked to. */
  const cancelled = async (write: () => Promise<unknown>): Promise<unknown> => {
    for (;;) {
      let isCommitted = false
      const written = write().then(
        () => {
          isCommitted = true
        },
        (error: unknown) => error,
      )
      const state = await until('the commit waits or is done', async () => {
        const rows = await query({ databaseUrl: url }, waiting)
        return (rows.length === 1 && 'waits') || (isCommitted && 'done')
      })
      if (state === 'done') continue
      await query({ databaseUrl: url }, cancel)
      return written
    }
  }
  const upsert = (name: string) =>
    `insert into meta (name, value) values ('${name}', 'x') on conflict (name) do update set value = 'x'`
  await setNames('nobody')
  for (const write of [
    () => db.write(unit({ text: upsert('a'), values: [] })),
    () => migrating.tx((tx) => tx.run(upsert('b'))),
  ]) {
    assert.ok((await cancelled(write)) instanceof StoreAway)
  }
  await setNames('')
  await db.write(note('c'))
  assert.deepEqual(await notesAt(url), ['a', 'b', 'c'])
})

/** A primary with a database, and a copy of it that may be promoted. */
async function aPrimaryAndItsStandby(t: After) {
  const first = await startPostgres(t)
  const primary = await first.createDatabase()
  const db = await openStore({ kind: 'postgres', url: primary })
  await db.close()
  await first.stop()
  let second: PostgresServer | undefined
  t.after(() => second?.stop())
  const settings = { fsync: 'off', max_connections: '200' }
  second = await startPostgresServer(await temporaryFolder(t), settings, first.data)
  await first.start()
  const standby = primary.replace(`:${first.port}/`, `:${second.port}/`)
  return {
    /** The database on each server, which has its tables. */
    primary,
    standby,
    servers: { primary: first, standby: second },
    /** The URL that names these servers, in this order. */
    both: (one: string, other: string) => one.replace(/(:\d+)\//, `$1,${new URL(other).host}/`),
    /** The standby becomes a primary, whatever the other one is. */
    async promote() {
      await query({ databaseUrl: standby }, 'select pg_promote()')
      await until('the standby is promoted', async () => {
        const [row] = await query(
          { databaseUrl: standby },
          'select pg_is_in_recovery() as is_standby',
        )
        return row?.is_standby === 0
      })
    },
  }
}
