import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCommand } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'

test("an operator's command where there is no store says so, and makes none that has nothing in it", async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'mayfly.db')
  for (const args of [
    ['order', 'list'],
    ['order', 'show', 'ab'.repeat(32)],
    ['sales', 'export'],
    ['takedown', 'list'],
    ['gate', 'project', 'list'],
    ['gate', 'project', 'add', '--address', 'alice@example.com'],
    ['backup', join(folder, 'copy.db')],
  ]) {
    const { code, out, err } = await runCommand(args, { MAYFLY_DATABASE_URL: `sqlite:${file}` })
    assert.notEqual(code, 0, args.join(' '))
    assert.equal(out, '')
    assert.match(err, new RegExp(`^There is no store at ${file}\\.`), args.join(' '))
  }
  assert.deepEqual(readdirSync(folder), [])
})
