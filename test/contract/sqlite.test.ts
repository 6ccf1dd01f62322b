import { join } from 'node:path'
import { openSqlite } from '../../src/db/sqlite/sqlite.ts'
import { temporaryFolder } from '../support/folder.ts'
import { dbContract } from './db.ts'

dbContract('SQLite', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const open = async () => {
    const db = await openSqlite(file)
    t.after(() => db.close().catch(() => undefined))
    return db
  }
  return { db: await open(), reopen: open }
})
