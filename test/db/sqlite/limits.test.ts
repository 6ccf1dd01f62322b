import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { limitedTo } from '../../../src/db/db.ts'

const SOURCE = fileURLToPath(new URL('../../../src/', import.meta.url))

/** How often SQLite plans a query while it is run with three limits. */
function plansOf(limit: string): number {
  const database = new DatabaseSync(':memory:')
  database.exec('create table thing (id integer primary key); insert into thing values (1), (2)')
  let isPlanning = true
  let plans = 0
  database.setAuthorizer(() => {
    if (!isPlanning) plans++
    isPlanning = true
    return 0
  })
  const statement = database.prepare(
    `select id from thing order by id ${limit.replaceAll('$', '?')}`,
  )
  const found = [1, 2, 1].map((rows) => {
    isPlanning = false
    return statement.all(rows).length
  })
  database.close()
  assert.deepEqual(found, [1, 2, 1])
  return plans
}

test('SQLite keeps the plan of a query whose limit is given as a parameter', () => {
  assert.equal(plansOf(limitedTo(1)), 0)
  assert.notEqual(plansOf('limit $1'), 0)
})

test('no statement of the service has a limit that makes SQLite plan it anew', async () => {
  const bare: string[] = []
  let seen = 0
  for await (const file of glob('**/*.ts', { cwd: SOURCE })) {
    const text = await readFile(join(SOURCE, file), 'utf8')
    seen += text.split('limitedTo(').length - 1
    if (file !== 'db/db.ts' && /\blimit \$\d/.test(text)) bare.push(file)
  }
  assert.deepEqual(bare, [])
  assert.ok(seen > 20, `only ${seen} limits`)
})
