/** A service that is told to stop, or to reload, before it listens, while its start waits for somebody else. */

import assert from 'node:assert/strict'
import { cp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openStore } from '../../../src/db/open.ts'
import { POSTGRES } from '../../../src/db/postgres/dialect.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { holding, waits } from '../../support/locks.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { beginProgram, type Starting, startProgram } from '../../support/program.ts'
import { serve } from '../../support/serving.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const MIGRATIONS = new URL('../../../src/db/migrations/', import.meta.url)
const LAST = '0003-pages.postgres.sql'
const SAID = 'Stopped before it listened. The next start begins again.\n'

/** A database that lacks the migration. */
async function anOlderDatabase(t: TestContext): Promise<string> {
  const folder = await temporaryFolder(t)
  await cp(MIGRATIONS, folder, { recursive: true })
  await rm(join(folder, LAST))
  const url = await aPostgresDatabase()
  const older = { folder: pathToFileURL(`${folder}/`) }
  await (await openStore({ kind: 'postgres', url }, older)).close()
  return url
}

/** It ended as any other stop does. A start that goes on ends by its own limits with 1, or with none. */
async function endsAtOnce(program: Starting, signal: NodeJS.Signals) {
  program.signal(signal)
  assert.deepEqual(await program.ended, { code: 0, signal: null })
  assert.equal(program.told(), SAID)
}

suite('a service told to stop while it starts', { timeout: 300_000 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`a start that waits for a lock ends at ${signal}, and has migrated nothing`, async (t) => {
      const url = await anOlderDatabase(t)
      const letGo = await holding(t, url, 'lock table rate_limit in access exclusive mode')
      const program = beginProgram(t, url)
      assert.equal((await program.saw('store.migrating')).name, LAST)
      await until('it waits', () => waits(url))
      await endsAtOnce(program, signal)
      const [row] = await query(
        { databaseUrl: url },
        `select count(*) as n from migration where name = $1`,
        LAST,
      )
      assert.equal(row?.n, 0)
      await letGo()
      const again = await startProgram(t, url)
      assert.equal((await fetch(`${again.url}/ready`)).status, 200)
    })
  }

  test('a start that waits for another instance’s migration ends at SIGTERM, and its session with it', async (t) => {
    const url = await aPostgresDatabase()
    await holding(t, url, POSTGRES.turns?.claim ?? '')
    const program = beginProgram(t, url)
    const { reason } = await program.saw('store.waiting')
    assert.equal(reason, 'another instance migrates the database')
    await until('its session waits', () => waits(url))
    await endsAtOnce(program, 'SIGTERM')
    await until('its session is gone', async () => !(await waits(url)))
  })

  test('a start that waits follows a SIGHUP once the service runs', async (t) => {
    const url = await aPostgresDatabase()
    const letGo = await holding(t, url, POSTGRES.turns?.claim ?? '')
    const program = beginProgram(t, url)
    await program.saw('store.waiting')
    program.signal('SIGHUP')
    await letGo()
    await program.saw('listening')
    await program.saw('settings.reloaded')
  })

  test('a start that waits for the database ends at SIGTERM', async (t) => {
    const program = beginProgram(t, 'postgres://mayfly:mayfly@127.0.0.1:9/mayfly')
    await program.saw('store.waiting')
    await endsAtOnce(program, 'SIGTERM')
  })

  test('a start that waits for the node ends at SIGTERM, and lets go of its file', async (t) => {
    const node = createServer((socket) => t.after(() => socket.destroy()))
    const asked = new Promise((resolve) => node.once('connection', resolve))
    const { host } = new URL(await serve(t, node))
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const program = beginProgram(t, file, {
      environment: { MAYFLY_LIGHTNING_URL: `phoenixd+http://:hunter2@${host}` },
    })
    await asked
    await endsAtOnce(program, 'SIGTERM')
    const again = await startProgram(t, file)
    assert.equal((await fetch(`${again.url}/ready`)).status, 200)
  })
})
