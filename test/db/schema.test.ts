/** The migrations make this shape and no other: an index or a default that is forgotten is seen here. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { shapeOf } from '../support/schema.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'

const engine = process.env.MAYFLY_TEST_ENGINE ?? 'sqlite'

test('a new store has the tables, indexes and defaults of test/db/schema-sqlite.txt or schema-postgres.txt', async (t) => {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  const shape = await shapeOf(db)
  const file = new URL(`./schema-${engine}.txt`, import.meta.url)
  // After a migration is changed: UPDATE_SCHEMA=1 npm test test/db/schema.test.ts, and read the difference.
  if (process.env.UPDATE_SCHEMA === '1') await writeFile(file, `${shape.join('\n')}\n`)
  assert.deepEqual(shape, (await readFile(file, 'utf8')).trimEnd().split('\n'))
})
