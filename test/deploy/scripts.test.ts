/** The scripts of deploy/, as an operator's machine runs them. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BIN, ENVIRONMENT } from '../support/bin.ts'
import { purchase } from '../support/buying.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { ownPort } from '../support/ports.ts'
import { startServer, type TestServer } from '../support/server.ts'

const script = (name: string): string =>
  fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))

type Ran = { code: number; out: string; err: string }

function run(name: string, args: string[], environment: Record<string, string> = {}): Promise<Ran> {
  const env = { ...ENVIRONMENT, BACKUP_MAYFLY: `${process.execPath} ${BIN}`, ...environment }
  return new Promise((resolve) => {
    execFile('bash', [script(name), ...args], { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, out, err })
    })
  })
}

const DAY_SECONDS = 86_400
const aged = (file: string, days: number): Promise<void> => {
  const then = Date.now() / 1000 - days * DAY_SECONDS
  return utimes(file, then, then)
}

async function aBackup(t: After) {
  const server = await startServer(t)
  await purchase(server, {})
  const folder = await temporaryFolder(t)
  const settings = { MAYFLY_DATABASE_URL: `sqlite:${server.file}` }
  const backUp = (more: Record<string, string> = {}) =>
    run('backup.sh', [folder], { ...settings, ...more })
  const first = await backUp()
  assert.deepEqual([first.code, first.err], [0, ''])
  return { server, folder, backUp, first }
}

const secretOf = (server: TestServer): string => server.file.replace(/\.db$/, '.secret')

suite('backup.sh', () => {
  test('a backup is made beside the service, and old ones end but the newest', async (t) => {
    const { folder, backUp } = await aBackup(t)
    const [made = ''] = await readdir(folder)
    assert.match(made, /^mayfly-\d{4}-\d\d-\d\dT\d{6}Z\.db$/)
    const old = [
      'mayfly-2026-01-01T031700Z.db',
      'mayfly-2026-01-02T031700Z.dump',
      'mayfly-x.db.draft',
    ]
    for (const name of [...old, 'notes.txt']) {
      await writeFile(join(folder, name), '')
      await aged(join(folder, name), 4)
    }
    await aged(join(folder, made), 2)
    const kept = await backUp({
      BACKUP_KEEP_DAYS: '3',
      MAYFLY_DATABASE_URL: 'sqlite:/nowhere/a.db',
    })
    assert.notEqual(kept.code, 0, 'a backup that failed deletes nothing')
    assert.equal((await readdir(folder)).length, 5)
    await rename(join(folder, made), join(folder, 'mayfly-2026-01-03T031700Z.db'))
    await aged(join(folder, 'mayfly-2026-01-03T031700Z.db'), 4)
    const young = 'mayfly-2026-01-04T031700Z.db'
    await writeFile(join(folder, young), '')
    await aged(join(folder, young), 2)
    const again = await backUp({ BACKUP_KEEP_DAYS: '3' })
    assert.equal(again.code, 0, again.err)
    const [younger, fresh, notes, ...more] = (await readdir(folder)).toSorted()
    assert.equal(younger, young)
    assert.deepEqual([notes, more], ['notes.txt', []])
    assert.match(fresh ?? '', /^mayfly-/)
    assert.ok(!old.includes(fresh ?? ''))
  })

  test('a PostgreSQL store is dumped with its password in no argument, and the dump is read back', async (t) => {
    const [folder, tools] = [await temporaryFolder(t), await temporaryFolder(t)]
    const tool = (name: string, text: string): Promise<void> =>
      writeFile(join(tools, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 })
    await tool(
      'pg_dump',
      'echo "$@" >"$TOLD"; env | grep ^PG >>"$TOLD"; echo dump >"$(cut -d= -f2 <<<"$2")"',
    )
    await tool('pg_restore', '[ "$(cat "$2")" = "$READS" ]')
    const told = join(tools, 'told')
    const url = 'postgres://mayfly:p%40ss@[::1]:6543/books?pool=8&sslmode=require'
    const backUp = (reads: string, from = url) =>
      run('backup.sh', [folder], {
        PATH: `${tools}:${process.env.PATH}`,
        TOLD: told,
        READS: reads,
        MAYFLY_DATABASE_URL: from,
      })
    assert.notEqual((await backUp('something else')).code, 0)
    assert.ok((await readdir(folder)).every((name) => name.endsWith('.draft')))
    assert.equal((await backUp('dump')).code, 0)
    const [args = '', ...variables] = (await readFile(told, 'utf8')).trim().split('\n')
    assert.match(args, /^--format=custom --file=\S+\.dump\.draft$/)
    assert.deepEqual(variables.toSorted(), [
      ...['PGDATABASE=books', 'PGHOST=::1', 'PGPASSWORD=p@ss', 'PGPORT=6543'],
      ...['PGSSLMODE=require', 'PGUSER=mayfly'],
    ])
    assert.ok((await readdir(folder)).some((name) => /^mayfly-.*Z\.dump$/.test(name)))

    await backUp('dump', 'postgres://mayfly:x@db1:6543,db2/books')
    assert.deepEqual(
      (await readFile(told, 'utf8')).match(/^PG(?:HOST|PORT|TARGET).*/gm)?.toSorted(),
      ['PGHOST=db1,db2', 'PGPORT=6543,5432', 'PGTARGETSESSIONATTRS=read-write'],
    )
    await rm(told)
    assert.notEqual((await backUp('dump', 'postgres://mayfly:x@db1:port/books')).code, 0)
    await assert.rejects(readFile(told), 'a URL that cannot be read dumped another database')
  })

  test('a number of days that cannot be meant is refused before anything is deleted', async (t) => {
    const { folder, backUp } = await aBackup(t)
    for (const days of ['0', '-1', 'all', '1; true'])
      assert.equal((await backUp({ BACKUP_KEEP_DAYS: days })).code, 2)
    assert.equal((await readdir(folder)).length, 1)
  })
})

suite('restore-drill.sh', () => {
  test('the newest backup is restored and its secret opens it, without a touch of the service', async (t) => {
    const { server, folder } = await aBackup(t)
    const before = await readdir(folder)
    const drill = await run('restore-drill.sh', [folder, secretOf(server)], {
      // None of the service's own settings is used.
      MAYFLY_DATABASE_URL: 'sqlite:/nowhere/mayfly.db',
      MAYFLY_LIGHTNING_URL: 'lnd+https://nowhere.invalid?macaroon=/nowhere',
    })
    assert.deepEqual([drill.code, drill.err], [0, ''])
    assert.match(drill.out, /was restored, and the secret opens it\.\n$/)
    assert.deepEqual(await readdir(folder), before)
  })

  test('the drill fails with a wrong secret, a damaged or an old copy, and without one', async (t) => {
    const { server, folder } = await aBackup(t)
    const wrong = join(await temporaryFolder(t), 'secret')
    await writeFile(wrong, '22'.repeat(32))
    const other = await run('restore-drill.sh', [folder, wrong])
    assert.equal(other.code, 1)
    assert.match(other.err, /"check":"secret","state":"bad"/)
    const [name = ''] = await readdir(folder)
    await aged(join(folder, name), 2)
    const old = await run('restore-drill.sh', [folder, secretOf(server)])
    assert.match(old.err, /is older than 26 hours/)
    assert.equal(old.code, 1)
    await writeFile(join(folder, 'mayfly-9999-01-01T000000Z.db'), 'damaged')
    assert.notEqual((await run('restore-drill.sh', [folder, secretOf(server)])).code, 0)
    const empty = await run('restore-drill.sh', [await temporaryFolder(t), secretOf(server)])
    assert.match(empty.err, /There is no backup/)
  })
})

suite('healthcheck.sh', () => {
  test('a service that answers is healthy, and no other is', async (t) => {
    const server = await startServer(t, await ownPort())
    const check = async (url: string) =>
      (await run('healthcheck.sh', [], { MAYFLY_PORT: new URL(url).port })).code
    assert.equal(await check(server.url), 0)
    await server.stop()
    assert.notEqual(await check(server.url), 0)
    for (const answer of [503, 302]) {
      const stranger = createServer((_request, response) => response.writeHead(answer).end())
      await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
      t.after(() => stranger.close())
      const { port } = stranger.address() as { port: number }
      assert.notEqual(await check(`http://127.0.0.1:${port}`), 0, `${answer}`)
    }
  })
})
