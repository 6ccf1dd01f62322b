import assert from 'node:assert/strict'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ConfigError } from '../../src/service/config.ts'
import { secretBeside } from '../../src/service/secret-file.ts'
import { temporaryFolder } from '../support/folder.ts'

const SECRET = '5e'.repeat(32)
const NEW = { isStoreUsed: false }

suite('the secret beside the database', () => {
  test('the secret beside the database is made once, for its owner alone', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'mayfly.db')
    const secret = secretBeside(file, NEW)
    assert.deepEqual(await readdir(folder), ['mayfly.secret'], 'no draft of it stays')
    assert.equal(secret.length, 32)
    assert.deepEqual(secretBeside(file, NEW), secret)
    assert.deepEqual(secretBeside(file, { isStoreUsed: true }), secret)
    const kept = file.replace(/\.db$/, '.secret')
    assert.equal((await stat(kept)).mode & 0o777, 0o600)
    assert.equal(await readFile(kept, 'utf8'), `${Buffer.from(secret).toString('hex')}\n`)
  })

  test('each database has a secret of its own beside it', async (t) => {
    const folder = await temporaryFolder(t)
    const [one, other] = ['one.db', 'other.db'].map((name) => secretBeside(join(folder, name), NEW))
    assert.notDeepEqual(one, other)
  })

  test('the secret beside the database is never made anew over a file that is not one', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    for (const content of ['', 'hunter2', SECRET.slice(2)]) {
      await writeFile(kept, content)
      assert.throws(
        () => secretBeside(file, NEW),
        new ConfigError(`${kept} must hold 32 bytes in hex. Restore it, or set MAYFLY_SECRET.`),
      )
      assert.equal(await readFile(kept, 'utf8'), content)
    }
  })
})
