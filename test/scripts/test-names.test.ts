import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url)
const NAME = /(?<![\w.])(?:t\.)?test\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g
/** A name that begins so goes on from the name of its suite, and says nothing in a list of failures. */
const CONTINUES =
  /^(?:and|are|but|by|can|does|had|has|is|may|nor|of|or|that|was|were|which|whose|with)\b/

test('no name of a test begins in the middle of a sentence', async () => {
  const files = await Array.fromAsync(glob('test/**/*.ts', { cwd: fileURLToPath(ROOT) }))
  const halves: string[] = []
  let names = 0
  for (const file of files) {
    for (const [, , name = ''] of (await readFile(new URL(file, ROOT), 'utf8')).matchAll(NAME)) {
      names++
      if (CONTINUES.test(name)) halves.push(`${file}: ${name}`)
    }
  }
  assert.deepEqual(halves, [])
  assert.ok(names > 1000, `${names} names`)
})
