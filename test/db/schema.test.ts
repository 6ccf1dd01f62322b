/** The migrations make this shape and no other: an index or a default that is forgotten is seen here. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../../src/db/open.ts'
import type { StoreUrl } from '../../src/db/server-urls.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { shapeOf } from '../support/schema.ts'

const ENGINES: Record<string, (t: After) => Promise<StoreUrl>> = {
  sqlite: async (t) => ({ kind: 'sqlite', file: join(await temporaryFolder(t), 'mayfly.db') }),
  postgres: async () => ({ kind: 'postgres', url: await aPostgresDatabase() }),
}

for (const [engine, where] of Object.entries(ENGINES)) {
  test(`a new store on ${engine} has the tables, indexes and defaults of test/db/schema-${engine}.txt`, async (t) => {
    const db = await openStore(await where(t))
    t.after(() => db.close())
    const shape = await shapeOf(db)
    const file = new URL(`./schema-${engine}.txt`, import.meta.url)
    // After a migration is changed: UPDATE_SCHEMA=1 npm test test/db/schema.test.ts, and read the difference.
    if (process.env.UPDATE_SCHEMA === '1') await writeFile(file, `${shape.join('\n')}\n`)
    assert.deepEqual(shape, (await readFile(file, 'utf8')).trimEnd().split('\n'))
  })
}
