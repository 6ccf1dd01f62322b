import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, lchown, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheFolder } from '../../bin/compile-cache.mjs'
import { temporaryFolder } from '../support/folder.ts'

const run = promisify(execFile)
const CACHE = fileURLToPath(new URL('../../bin/compile-cache.mjs', import.meta.url))
/** Another user than the one of the tests, who needs not exist. */
const SOMEBODY = 12_345

const isRoot = process.geteuid?.() === 0

suite('the folder of the compile cache', () => {
  test('the compile cache is in the package, and nobody else reads or writes it', async (t) => {
    const root = await temporaryFolder(t)
    assert.equal(cacheFolder(root), join(root, '.cache/compiled'))
    for (const folder of ['.cache', '.cache/compiled']) {
      assert.equal((await stat(join(root, folder))).mode & 0o777, 0o700)
    }
    assert.equal(cacheFolder(root), join(root, '.cache/compiled'))
  })

  test('the compile cache of an image that everybody may read and nobody write is used', async (t) => {
    const root = await temporaryFolder(t)
    await mkdir(join(root, '.cache/compiled'), { recursive: true })
    await chmod(join(root, '.cache'), 0o555)
    await chmod(join(root, '.cache/compiled'), 0o555)
    assert.equal(cacheFolder(root), join(root, '.cache/compiled'))
  })

  test('a compile cache that a group may write is used where that group may write the package', async (t) => {
    const root = await temporaryFolder(t)
    await mkdir(join(root, '.cache/compiled'), { recursive: true })
    await chmod(join(root, '.cache'), 0o775)
    await chmod(root, 0o775)
    assert.equal(cacheFolder(root), join(root, '.cache/compiled'))
    await chmod(join(root, '.cache'), 0o777)
    await chmod(root, 0o777)
    assert.equal(cacheFolder(root), null)
    if (isRoot) {
      await chmod(join(root, '.cache'), 0o775)
      await lchown(join(root, '.cache'), 0, SOMEBODY)
      assert.equal(cacheFolder(root), null)
    }
  })

  for (const shared of ['.cache', '.cache/compiled']) {
    for (const mode of [0o777, 0o1777, 0o770]) {
      test(`a compile cache whose folder ${shared} others may write (${mode.toString(8)}) is not used`, async (t) => {
        const root = await temporaryFolder(t)
        await mkdir(join(root, '.cache/compiled'), { recursive: true })
        await chmod(join(root, shared), mode)
        assert.equal(cacheFolder(root), null)
      })
    }

    test(`a compile cache whose folder ${shared} is a link or a file is not used`, async (t) => {
      const [root, elsewhere] = [await temporaryFolder(t), await temporaryFolder(t)]
      if (shared !== '.cache') await mkdir(join(root, '.cache'))
      await symlink(elsewhere, join(root, shared))
      assert.equal(cacheFolder(root), null)
      const other = await temporaryFolder(t)
      if (shared !== '.cache') await mkdir(join(other, '.cache'))
      await writeFile(join(other, shared), '')
      assert.equal(cacheFolder(other), null)
    })
  }

  test('a package that cannot be written has no compile cache, and runs all the same', async (t) => {
    const root = await temporaryFolder(t)
    const file = join(root, 'a-file')
    await writeFile(file, '')
    // Below a file there is no folder, whoever asks.
    assert.equal(cacheFolder(file), null)
    const script = `const { useCompileCache } = await import(${JSON.stringify(CACHE)})
      useCompileCache(${JSON.stringify(file)}); console.log('ran')`
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', script], {
      env: {},
    })
    assert.deepEqual([stdout, stderr], ['ran\n', ''])
    assert.deepEqual(await readdir(root), ['a-file'])
  })

  // Only root can give a folder away.
  if (isRoot) {
    test('a compile cache of another user is not used', async (t) => {
      const root = await temporaryFolder(t)
      await mkdir(join(root, '.cache/compiled'), { recursive: true })
      await lchown(join(root, '.cache/compiled'), SOMEBODY, SOMEBODY)
      assert.equal(cacheFolder(root), null)
      await lchown(join(root, '.cache/compiled'), 0, 0)
      await lchown(join(root, '.cache'), SOMEBODY, SOMEBODY)
      assert.equal(cacheFolder(root), null)
    })

    test('the compile cache of the owner of the package is used by others, except by root', async (t) => {
      const root = await temporaryFolder(t)
      await mkdir(join(root, '.cache/compiled'), { recursive: true })
      await chmod(root, 0o755)
      assert.equal(as(SOMEBODY, root), join(root, '.cache/compiled'))
      for (const part of ['', '.cache', '.cache/compiled']) {
        await lchown(join(root, part), SOMEBODY, SOMEBODY)
      }
      assert.equal(as(SOMEBODY, root), join(root, '.cache/compiled'))
      assert.equal(cacheFolder(root), null)
    })

    test('nobody but its owner leaves a compile cache in a package, not even root', async (t) => {
      const root = await temporaryFolder(t)
      await chmod(root, 0o777)
      assert.equal(as(SOMEBODY, root), null)
      await lchown(root, SOMEBODY, SOMEBODY)
      assert.equal(cacheFolder(root), null)
      assert.deepEqual(await readdir(root), [])
      assert.equal(as(SOMEBODY, root), join(root, '.cache/compiled'))
    })
  }
})

/** The folder that this user finds. */
function as(user: number, root: string): string | null {
  process.seteuid?.(user)
  try {
    return cacheFolder(root)
  } finally {
    process.seteuid?.(0)
  }
}

test('a start without a compile cache leaves one, and the next start uses it', async (t) => {
  const root = await temporaryFolder(t)
  const script = `const { useCompileCache } = await import(${JSON.stringify(CACHE)})
    useCompileCache(${JSON.stringify(root)})
    await import(${JSON.stringify(fileURLToPath(new URL('../../src/lib/base62.ts', import.meta.url)))})`
  const start = () =>
    run(process.execPath, ['--input-type=module', '-e', script], {
      env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
    })
  const first = await start()
  assert.match(first.stderr, /base62\.ts was not initialized/)
  const second = await start()
  assert.match(second.stderr, /base62\.ts was accepted/)
})
