import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import { refusedStart, startProgram } from '../../support/program.ts'

test('a second service on one SQLite file is refused, and told who holds it and since when', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const first = await startProgram(t, file)
  const holder = new RegExp(
    `^Mayfly did not start\\. Process ${first.pid} runs on ${file} already, since \\d{4}-\\d\\d-\\d\\dT[\\d:]{8}Z\\.`,
  )
  for (const lock of [`${file}.lock`, `${file}.lock.pid`]) {
    assert.equal(statSync(lock).mode & 0o077, 0, 'another user could hold it')
  }
  const link = join(await temporaryFolder(t), 'link.db')
  await symlink(file, link)
  for (const path of [file, link]) {
    const { code, told } = await refusedStart(t, path)
    assert.equal(code, 1)
    assert.match(told.replace(link, file), holder)
  }
  assert.equal((await fetch(`${first.url}/ready`)).status, 200)

  await first.kill()
  const second = await startProgram(t, file)
  second.signal('SIGTERM')
  assert.equal((await second.ended).code, 0)
  assert.equal(existsSync(`${file}.lock.pid`), false)
  await (await startProgram(t, file)).kill()
})
