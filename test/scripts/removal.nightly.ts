import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { checkArrows, readSources } from '../../scripts/check-arrows.ts'
import { PRODUCT_NAMES } from '../../src/lib/product-names.ts'
import { temporaryFolder } from '../support/folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Rooms with a part for each product, which AGENTS.md says: the type checker names what is left there. */
const FACES = ['cli', 'client', 'web', 'gate-middleware']
/** Another one, which stays in the copy because the service mounts it. */
const MOUNTED_FACE = /[/]src[/]tools[/]/

for (const product of [...PRODUCT_NAMES, 'gate']) {
  test(`the service compiles without ${product}, its entry and its name`, async (t) => {
    const copy = await temporaryFolder(t)
    await cp(join(ROOT, 'src'), join(copy, 'src'), { recursive: true })
    const formats = (await readdir(join(copy, 'src/protocol')))
      .filter((file) => file.startsWith(`${product}-`))
      .map((file) => `protocol/${file}`)
    for (const path of [product, ...formats, ...FACES, 'main.ts']) {
      await rm(join(copy, 'src', path), { recursive: true })
    }
    await change(join(copy, 'src/service/products.ts'), (text) =>
      text
        // Its entry, and the import that the entry needs.
        .replace(new RegExp(`\\n  ${product}: \\{\\n.*?\\n  \\},`, 's'), '')
        .replace(new RegExp(`import [^\\n]* from '../${product}/product\\.ts'\\n`), ''),
    )
    await change(join(copy, 'src/lib/product-names.ts'), (text) =>
      text.replace(
        new RegExp(`\\n  ${product}: \\{(?:[^\\n]*\\},|\\n.*?\\n  \\},)(?=\\n)`, 's'),
        '',
      ),
    )
    const errors = await typeErrors(copy)
    assert.deepEqual(
      errors.filter((error) => !error.startsWith(' ') && !MOUNTED_FACE.test(error)),
      [],
    )
    const sources = readSources(pathToFileURL(`${join(copy, 'src')}/`))
    assert.deepEqual(checkArrows(sources), [])
  })
}

async function change(file: string, edit: (text: string) => string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const edited = edit(text)
  assert.notEqual(edited, text)
  await writeFile(file, edited)
}

/** What the compiler says of the copy, a line each. */
async function typeErrors(copy: string): Promise<string[]> {
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  await cp(join(ROOT, 'package.json'), join(copy, 'package.json'))
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: { rootDir: '.' },
    include: ['src'],
  }
  await writeFile(join(copy, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', copy], (_error, stdout, stderr) => {
      resolve((stdout + stderr).split('\n').filter((line) => line !== ''))
    })
  })
}
