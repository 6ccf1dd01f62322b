import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { wrongInstall } from '../../scripts/check-install.ts'
import { type After, temporaryFolder } from '../support/folder.ts'

/** Three packages of four MB in all: one is global, one below it, and one below that has a scope. */
async function anInstall(t: After): Promise<string> {
  const prefix = await temporaryFolder(t)
  const modules = 'lib/node_modules/mayfly/node_modules'
  for (const [file, bytes] of [
    ['lib/node_modules/mayfly/package.json', 2],
    ['lib/node_modules/mayfly/dist/main.js', 3_000_000],
    // What is no package of its own, and what lies outside, counts not as one.
    ['lib/node_modules/mayfly/docs/package.json', 2],
    ['bin/mayfly', 9_000_000],
    [`${modules}/one/package.json`, 2],
    [`${modules}/@scope/other/package.json`, 1_000_000],
  ] as const) {
    await mkdir(dirname(join(prefix, file)), { recursive: true })
    await writeFile(join(prefix, file), Buffer.alloc(bytes, ' '))
  }
  return prefix
}

test('an install is as README says if it has so many packages, and about as many MB', async (t) => {
  const prefix = await anInstall(t)
  assert.equal(wrongInstall(prefix, 'installs it with 3 packages in 4 MB.'), null)
})

test('an install that README counts or weighs wrongly is told with both figures', async (t) => {
  const prefix = await anInstall(t)
  for (const said of ['2 packages in 4 MB', '4 packages in 4 MB']) {
    assert.equal(
      wrongInstall(prefix, `with ${said}`),
      `README says ${said}, and the install has 3 in 4 MB`,
    )
  }
  for (const said of ['3 packages in 3 MB', '3 packages in 5 MB']) {
    assert.match(wrongInstall(prefix, `with ${said}`) ?? '', /^README says 3 packages in [35] MB,/)
  }
  assert.ok(wrongInstall(prefix, 'a README that does not say'))
})
