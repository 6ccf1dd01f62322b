/** What is beside the draft of a copy: commands and refusals are in test/cli/operator/backup.test.ts. */
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openStore } from '../../../src/db/open.ts'
import { backupSqlite, restoreSqlite } from '../../../src/db/sqlite/backup.ts'
import { temporaryFolder } from '../../support/folder.ts'

/** A copy of an empty store, and where it is to be restored. */
async function aCopy(t: TestContext) {
  const folder = await temporaryFolder(t)
  const [live, copy, file] = ['live.db', 'copy.db', 'mayfly.db'].map((name) => join(folder, name))
  assert.ok(live && copy && file)
  await (await openStore({ kind: 'sqlite', file: live })).close()
  await backupSqlite(live, copy)
  return { folder, copy, file, draft: `${file}.draft` }
}

test('the log of a restore that was killed is in no later one, though its draft was removed', async (t) => {
  const { folder, copy, file, draft } = await aCopy(t)
  copyFileSync(copy, draft)
  const killed = new DatabaseSync(draft)
  killed.exec(`pragma journal_mode = wal; insert into meta (name, value) values ('killed', '')`)
  const left = join(folder, 'left')
  copyFileSync(`${draft}-wal`, left)
  killed.close()
  rmSync(draft)
  renameSync(left, `${draft}-wal`)

  await restoreSqlite(copy, file, [])

  const restored = new DatabaseSync(file)
  t.after(() => restored.close())
  assert.deepEqual(restored.prepare('select * from meta').all(), [])
})

test('a restore leaves no log of its draft behind, even if somebody looks into that', async (t) => {
  const { folder, copy, file, draft } = await aCopy(t)
  const restoring = restoreSqlite(copy, file, [])
  while (!existsSync(`${draft}-wal`)) await turn()
  const looking = new DatabaseSync(draft)
  looking.prepare('select * from meta').all()
  await restoring
  looking.close()
  assert.deepEqual((await readdir(folder)).sort(), ['copy.db', 'live.db', 'mayfly.db'])
})
