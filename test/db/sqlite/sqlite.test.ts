import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import {
  chmod,
  chown,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type RowMap, StoreError, StoreUnusable } from '../../../src/db/db.ts'
import { migrate, SQLITE } from '../../../src/db/migrate.ts'
import { openSqlite } from '../../../src/db/sqlite/sqlite.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { refusedStart } from '../../support/program.ts'
import { ALL_ROWS, ENDING, NO_ROWS } from '../../support/row-maps.ts'
import { unit, withDurability } from '../../support/unit.ts'
import { until } from '../../support/until.ts'

/** Root writes whatever it likes, so as root the program runs as nobody. */
const NOBODY = 65_534
const STRANGER = process.getuid?.() === 0 ? { uid: NOBODY } : {}

/** A migrated store with some hundred pages of orders' worth of text, closed. */
async function aStore(t: TestContext, ...statements: string[]): Promise<string> {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const db = await openSqlite(file)
  await migrate(db)
  await db.write(
    unit(
      ...Array.from({ length: 200 }, (_, i) => ({
        text: 'insert into meta (name, value) values ($1, $2)',
        values: [`filler ${i}`, randomBytes(1_500).toString('hex')],
      })),
      ...statements.map((text) => ({ text, values: [] })),
    ),
  )
  await db.close()
  return file
}

async function hand(folder: string, to: { uid?: number }): Promise<void> {
  if (to.uid === undefined) return
  for (const name of await readdir(folder)) await chown(join(folder, name), to.uid, to.uid)
  await chown(folder, to.uid, to.uid)
}

/** Does `work` while the folder has this mode; a folder that stayed so could not be swept away. */
async function withMode<T>(folder: string, mode: number, work: () => Promise<T>): Promise<T> {
  await chmod(folder, mode)
  try {
    return await work()
  } finally {
    await chmod(folder, 0o700)
  }
}

/** Every file of the store with its mode and a hash of its bytes. The empty lock file of a service stays. */
async function snapshot(folder: string): Promise<Record<string, string>> {
  const all = await readdir(folder, { withFileTypes: true })
  const entries = all.filter(({ name }) => !name.endsWith('.lock'))
  const files = entries.map(async (entry): Promise<[string, string]> => {
    const path = join(folder, entry.name)
    const mode = ((await stat(path)).mode & 0o777).toString(8)
    if (!entry.isFile()) return [entry.name, mode]
    const hash = createHash('sha256').update(await readFile(path))
    return [entry.name, `${mode} ${hash.digest('hex')}`]
  })
  return Object.fromEntries(await Promise.all(files))
}

/** Starts on this file, expects the sentence, and that nothing around the file has changed. */
async function refuses(
  t: TestContext,
  file: string,
  { sentence, ...options }: { sentence: string | RegExp; uid?: number },
): Promise<void> {
  const before = await snapshot(dirname(file))
  const { code, told } = await refusedStart(t, file, options)
  const prefix = 'Mayfly did not start. '
  assert.equal(told.slice(0, prefix.length), prefix)
  if (typeof sentence === 'string') assert.equal(told, `${prefix}${sentence}\n`)
  else assert.match(told.slice(prefix.length), sentence)
  assert.equal(code, 1)
  assert.deepEqual(await snapshot(dirname(file)), before)
}

suite('a start on a store that cannot be used says why and changes nothing', () => {
  test('a file that is no database stops the start, and is not changed', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    await writeFile(file, randomBytes(50_000), { mode: 0o640 })
    await refuses(t, file, {
      sentence: `${file} is not an SQLite database. Choose another MAYFLY_DATABASE_URL.`,
    })
  })

  for (const [what, damage] of [
    [
      'with a page damaged in the middle',
      (handle: FileHandle, middle: number) =>
        handle.write(Buffer.alloc(4096, 0xff), 0, 4096, middle),
    ],
    ['that lost its end', (handle: FileHandle, middle: number) => handle.truncate(middle)],
  ] as const) {
    test(`a file ${what} stops the start, and is not changed`, async (t) => {
      const file = await aStore(t)
      const handle = await open(file, 'r+')
      await damage(handle, ((await handle.stat()).size / 2) & ~4095)
      await handle.close()
      await refuses(t, file, {
        sentence:
          /^The database \S+ is damaged \([^\n]+\)\. Restore it from a backup; nothing was changed\.\n$/,
      })
    })
  }

  for (const [what, version] of [
    ['a newer version', 9999],
    ['another branch', 0],
  ] as const) {
    test(`a store of ${what}, with a migration that this program lacks, stops the start, and is not changed`, async (t) => {
      const row = `(${version}, '${version}-landed-elsewhere.sql', '')`
      const file = await aStore(t, `insert into migration (version, name, sha256) values ${row}`)
      await refuses(t, file, {
        sentence: `The database has migration ${version}, which this Mayfly does not know. Start the newer Mayfly that wrote it.`,
      })
    })
  }

  for (const [what, change] of [
    ['names no digests', 'alter table migration drop column sha256'],
    ['has other tables', `update migration set sha256 = 'another' where version = 1`],
  ] as const) {
    test(`a store of an unreleased version, which ${what}, stops the start, and is not changed`, async (t) => {
      await refuses(t, await aStore(t, change), {
        sentence:
          'The database was written by an unreleased version of Mayfly. This version cannot use it: start with a new one.',
      })
    })
  }

  test('a folder instead of a file stops the start, and is not changed', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    await mkdir(file)
    await refuses(t, file, {
      sentence: `The database ${file} cannot be opened. Check that the path is right and writable.`,
    })
  })

  test('a file that may not be written stops the start, and is not changed', async (t) => {
    const file = await aStore(t)
    await hand(dirname(file), STRANGER)
    await chmod(file, 0o400)
    await refuses(t, file, {
      sentence: `The database ${file} is read-only. Make it and its folder writable for this user.`,
      ...STRANGER,
    })
  })

  test('a folder that may not be written stops the start, and is not changed', async (t) => {
    const file = await aStore(t)
    await hand(dirname(file), STRANGER)
    await withMode(dirname(file), 0o500, () =>
      refuses(t, file, {
        sentence: `The database ${file} is read-only. Make it and its folder writable for this user.`,
        ...STRANGER,
      }),
    )
  })

  test('a folder that may not be made stops the start', async (t) => {
    const folder = await temporaryFolder(t)
    await hand(folder, STRANGER)
    const file = join(folder, 'data', 'mayfly.db')
    const { code, told } = await withMode(folder, 0o500, () => refusedStart(t, file, STRANGER))
    assert.match(told, /^Mayfly did not start\. The folder of \S+ cannot be made: [^\n]+\.\n$/)
    assert.deepEqual({ code, files: await readdir(folder) }, { code: 1, files: [] })
  })

  test('a folder of a file system that has its own names alone stops the start', async (t) => {
    const { code, told } = await refusedStart(t, '/proc/mayfly/data/mayfly.db', STRANGER)
    assert.match(told, /^Mayfly did not start\. The folder of \S+ cannot be made: [^\n]+\.\n$/)
    assert.equal(code, 1)
  })
})

suite('the SQLite file', () => {
  test('the SQLite file is written ahead, synced at each commit, and wiped where something is deleted', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file)
    t.after(() => db.close())
    const pragmas = await db.tx(async (tx) => [
      await tx.run('pragma journal_mode'),
      await tx.run('pragma synchronous'),
      await tx.run('pragma secure_delete'),
    ])
    assert.deepEqual(pragmas, [
      [{ journal_mode: 'wal' }],
      [{ synchronous: 2 }],
      [{ secure_delete: 1 }],
    ])
  })

  test('nothing that a query of the SQLite file sorts is written to another file, in any thread', async (t) => {
    const db = await openSqlite(join(await temporaryFolder(t), 'mayfly.db'))
    t.after(() => db.close())
    const text = 'pragma temp_store'
    const asked = { text, values: [], through: ALL_ROWS, parameters: [] }
    const inMemory = [{ temp_store: 2 }]
    assert.deepEqual(await db.write(unit({ text, values: [] })), { all: inMemory })
    assert.deepEqual([await db.read(text), await db.scan(asked)], [inMemory, inMemory])
  })

  test('the SQLite file is synced by each commit that has a flushed unit, and by no other', async (t) => {
    const db = await openSqlite(join(await temporaryFolder(t), 'mayfly.db'))
    t.after(() => db.close())
    const asked = unit({ text: 'pragma synchronous', values: [] })
    const deferred = withDurability('deferred', asked)
    const full = { all: [{ synchronous: 2 }] }
    assert.deepEqual(await db.write(asked), full)
    assert.deepEqual(await db.write(deferred), { all: [{ synchronous: 1 }] })
    const together = await Promise.all([deferred, asked, deferred].map(db.write))
    assert.deepEqual(together, [full, full, full])
  })

  test('the SQLite file is for its owner alone, and so are its log and its index', async (t) => {
    const folder = join(await temporaryFolder(t), 'made', 'on the way')
    const file = join(folder, 'mayfly.db')
    const db = await openSqlite(file)
    t.after(() => db.close())
    await migrate(db)
    const modes = Object.fromEntries(
      Object.entries(await snapshot(folder)).map(([name, facts]) => [name, facts.slice(0, 3)]),
    )
    assert.deepEqual(modes, { 'mayfly.db': '600', 'mayfly.db-shm': '600', 'mayfly.db-wal': '600' })
    assert.equal((await stat(folder)).mode & 0o777, 0o700)
  })

  test('a store refuses what arrives while it is closed, and the next store gets its own answers', async (t) => {
    const folder = await temporaryFolder(t)
    const db = await openSqlite(join(folder, 'first.db'))
    await db.write(unit({ text: 'create table t (n integer)', values: [] }))
    let isClosed = false
    const closed = db.close().finally(() => {
      isClosed = true
    })
    const late: Promise<unknown>[] = []
    while (!isClosed) {
      const insert = unit({ text: 'insert into t values (1)', values: [] })
      late.push(db.write(withDurability('deferred', insert)).catch(String))
      await turn()
    }
    await closed
    const next = await openSqlite(join(folder, 'second.db'))
    t.after(() => next.close())
    assert.deepEqual(await next.read('select 2 as two'), [{ two: 2 }])
    assert.deepEqual(await next.write(unit({ text: 'select 3 as three', values: [] })), {
      all: [{ three: 3 }],
    })
    assert.match(String((await Promise.all(late)).at(-1)), /closed/)
  })

  test('an SQLite store is closed once; a close that follows is refused, with what waits for it', async (t) => {
    const folder = await temporaryFolder(t)
    const db = await openSqlite(join(folder, 'first.db'))
    const [first, second] = [db.close(), assert.rejects(db.close(), StoreError)]
    await Promise.all([first, second])
    const late = assert.rejects(db.write(unit({ text: 'select 1', values: [] })), StoreError)
    await assert.rejects(db.close(), StoreError)
    await late
    const next = await openSqlite(join(folder, 'second.db'))
    t.after(() => next.close())
    assert.deepEqual(await next.read('select 2 as two'), [{ two: 2 }])
  })

  test('a thread of long work that cannot begin, or ends, fails its work alone, and the next work has a new one', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file)
    await db.write(unit({ text: 'create table t (n integer)', values: [] }))
    for (const wanted of [{}, { isAwaited: true }] as const) {
      const scan = (through: RowMap) =>
        db.scan({ text: 'select 1 as id', values: [], through, parameters: [], ...wanted })
      await rename(file, `${file}.away`)
      await mkdir(file)
      await assert.rejects(scan(NO_ROWS), StoreUnusable)
      await rmdir(file)
      await rename(`${file}.away`, file)
      await assert.rejects(scan(ENDING), StoreError)
      assert.deepEqual(await scan(NO_ROWS), [])
      await assert.rejects(scan(ENDING), StoreError)
    }
    await db.close()
    assert.deepEqual(await readdir(dirname(file)), ['mayfly.db'])
  })

  test('a writer that has emptied the log waits for other processes as long as before', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file, { truncateEveryMs: 5 })
    t.after(() => db.close())
    await db.write(unit({ text: 'create table t (n integer)', values: [] }))
    await until('the log is empty', async () => (await stat(`${file}-wal`)).size === 0)
    const [waits] = await db.tx((tx) => tx.run('pragma busy_timeout'))
    assert.deepEqual(waits, { timeout: 5_000 })
  })

  test('an SQLite store is opened by a thread that could not open another file', async (t) => {
    const folder = await temporaryFolder(t)
    const text = join(folder, 'text.db')
    await writeFile(text, 'no database, but longer than the header of one'.repeat(100))
    for (let i = 0; i < 6; i++) await assert.rejects(openSqlite(text), StoreUnusable)
    const db = await openSqlite(join(folder, 'mayfly.db'))
    t.after(() => db.close())
    const two = unit({ text: 'select 2 as two', values: [] })
    assert.deepEqual(await db.write(two), { all: [{ two: 2 }] })
  })

  test('a store that can be written and not be read stops the start, and leaves no thread at work', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'mayfly.db')
    // In this thread, which reads. The one that writes has its own.
    t.mock.method(DatabaseSync.prototype, 'exec', () => {
      throw Object.assign(new Error('unable to open database file'), { errcode: 14 })
    })
    await assert.rejects(openSqlite(file), /cannot be opened\. Check that the path is right/)
    assert.deepEqual(await readdir(folder), ['mayfly.db'], 'whoever writes has closed its log')
  })

  test('the SQLite file takes 50 units that arrive together in a few commits', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file)
    t.after(() => db.close())
    await migrate(db)
    const before = commits(await readFile(`${file}-wal`))
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        db.write(
          unit({ text: 'insert into meta (name, value) values ($1, $1)', values: [`${i}`] }),
        ),
      ),
    )
    const took = commits(await readFile(`${file}-wal`)) - before
    assert.ok(took >= 1 && took <= 3, `it took ${took} commits`)
  })

  test('the SQLite file is migrated once, however often it is opened', async (t) => {
    const file = await aStore(t)
    const db = await openSqlite(file)
    t.after(() => db.close())
    const before = await db.read('select version, name from migration')
    await migrate(db)
    await migrate(db)
    assert.deepEqual(await db.read('select version, name from migration'), before)
    assert.equal(before.length > 0, true)
  })

  test('a migration that a store has not had is run, although a later one was', async (t) => {
    const folder = await temporaryFolder(t)
    const options = { folder: pathToFileURL(`${folder}/`) }
    const db = await openSqlite(join(folder, 'mayfly.db'))
    t.after(() => db.close())
    await writeFile(join(folder, '0002-second.sql'), 'create table second (id integer);')
    await migrate(db, SQLITE, options)
    await writeFile(join(folder, '0001-first.sql'), 'create table first (id integer);')
    await migrate(db, SQLITE, options)
    assert.deepEqual(await db.read('select version from migration order by version'), [
      { version: 1 },
      { version: 2 },
    ])
    assert.deepEqual(await db.read('select * from first'), [])
  })

  test('the SQLite file is migrated by one of two that start at once', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const both = await Promise.all([openSqlite(file), openSqlite(file)])
    t.after(() => Promise.all(both.map((db) => db.close())))
    await Promise.all(both.map((db) => migrate(db)))
    const [one, other] = await Promise.all(
      both.map((db) => db.read('select version, name from migration order by version')),
    )
    assert.deepEqual(one, other)
  })
})

/** Commits in a write-ahead log: frames of its own salt that carry a database size (§4 of fileformat2). */
function commits(log: Buffer): number {
  const HEADER = 32
  const FRAME_HEADER = 24
  const pageSize = log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let count = 0
  for (let at = HEADER; at < log.length; at += FRAME_HEADER + pageSize) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break
    if (log.readUInt32BE(at + 4) !== 0) count++
  }
  return count
}

test('a query of all columns has those that a migration added after it was asked first', async (t) => {
  const db = await openSqlite(join(await temporaryFolder(t), 'mayfly.db'))
  t.after(() => db.close())
  await db.write(
    unit(
      { text: 'create table line (a integer, b integer)', values: [] },
      { text: 'insert into line values (1, 2), (3, 4)', values: [] },
    ),
  )
  assert.deepEqual(await db.read('select * from line'), [
    { a: 1, b: 2 },
    { a: 3, b: 4 },
  ])
  await db.tx((tx) => tx.run('alter table line add column c integer not null default 9'))
  assert.deepEqual(await db.read('select * from line'), [
    { a: 1, b: 2, c: 9 },
    { a: 3, b: 4, c: 9 },
  ])
})
