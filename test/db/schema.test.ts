/** The migrations make this shape and no other: an index or a default that is forgotten is seen here. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { shapeOf } from './shape.ts'

const FILE = new URL('./schema.txt', import.meta.url)
const ENGINES = ['sqlite', 'postgres']

test('a new store has the tables, indexes and defaults of test/db/schema.txt', async (t) => {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  const shape = await shapeOf(db)
  // After a migration is changed: UPDATE_SCHEMA=1 with this test on both engines, and read the difference.
  if (process.env.UPDATE_SCHEMA === '1') await update(shape, db.engine)
  assert.deepEqual(shape, await expectedOf(db.engine))
})

/** The lines for all engines, and those that begin with the name of this one. */
async function expectedOf(engine: string): Promise<string[]> {
  const lines = (await readFile(FILE, 'utf8')).trimEnd().split('\n')
  const others = ENGINES.filter((one) => one !== engine)
  return lines
    .filter((line) => !others.some((other) => line.startsWith(`${other}: `)))
    .map((line) => line.replace(`${engine}: `, ''))
    .toSorted()
}

async function update(shape: string[], engine: string): Promise<void> {
  const [other = ''] = ENGINES.filter((one) => one !== engine)
  const others = await expectedOf(other)
  const lines = [
    ...shape.map((line) => (others.includes(line) ? line : `${engine}: ${line}`)),
    ...others.filter((line) => !shape.includes(line)).map((line) => `${other}: ${line}`),
  ]
  await writeFile(FILE, `${lines.toSorted().join('\n')}\n`)
}
