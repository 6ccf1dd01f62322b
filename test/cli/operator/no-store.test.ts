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
    ['gate', 'payment', 'list'],
    ['backup', join(folder, 'copy.db')],
  ]) {
    const { code, out, err } = await runCommand(args, { MAYFLY_DATABASE_URL: `sqlite:${file}` })
    assert.notEqual(code, 0, args.join(' '))
    assert.equal(out, '')
    assert.match(err, new RegExp(`^There is no store at ${file}\\.`), args.join(' '))
  }
  assert.deepEqual(readdirSync(folder), [])
})

test("an operator's command ends as one that can be repeated later while PostgreSQL is away", async () => {
  const away = {
    MAYFLY_DATABASE_URL: 'postgres://mayfly:hunter2@127.0.0.1:9/mayfly',
    MAYFLY_SECRET: '11'.repeat(32),
  }
  for (const args of [
    ['order', 'list'],
    ['sales', 'export'],
    ['gate', 'project', 'list'],
  ]) {
    const { code, out, err } = await runCommand(args, away)
    assert.deepEqual([code, out], [5, ''], args.join(' '))
    assert.match(err, /^PostgreSQL at 127\.0\.0\.1:9 cannot be reached: connection refused\./)
  }
})

test('a project of GATE can be registered before the service has started for the first time', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const ask = (...args: string[]) =>
    runCommand(['gate', 'project', ...args], { MAYFLY_DATABASE_URL: `sqlite:${file}` })
  const added = await ask('add', '--address', 'alice@example.com', '--json')
  assert.equal(added.code, 0, added.err)
  const listed = await ask('list')
  assert.match(listed.out, /^gate_project_/)
})
