import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../support/folder.ts'

const run = promisify(execFile)
const root = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url))

/** Stands in for the registry, which tests do not reach: the digest is the length of the name. */
const DOCKER = `#!/usr/bin/env bash
printf 'sha256:%064d' "\${#6}"
`

test('pin-images.sh pins every image that has a tag, and changes nothing else', async (t) => {
  const checkout = await aCheckout(t, DOCKER)
  const before = await checkout.texts()
  await checkout.pin()
  const after = await checkout.texts()
  const images = [...before.matchAll(/^(?:\s*image: |FROM )(\S+:\S+)/gm)].map(([, name]) => name)
  assert.ok(images.length >= 4, 'two in compose.yaml and two stages of the Dockerfile')
  assert.equal([...after.matchAll(/@sha256:\d{64}/g)].length, images.length)
  assert.equal(after.replaceAll(/@sha256:\d{64}/g, ''), before)
  assert.match(after, /^FROM node:\S+@sha256:\d{64} AS packages$/m)
  assert.match(after, /^FROM packages AS build$/m, 'a stage has no digest')
  assert.match(after, /^ {4}image: mayfly$/m, 'what is built here has no digest')
  await checkout.pin()
  assert.equal(await checkout.texts(), after, 'a second run finds all of them pinned')
})

test('pin-images.sh changes no file when one image has no digest', async (t) => {
  const checkout = await aCheckout(t, `${DOCKER}\n[[ $6 != *phoenixd* ]] && exit 0\nexit 1\n`)
  const before = await checkout.texts()
  await assert.rejects(checkout.pin())
  assert.equal(await checkout.texts(), before)
})

async function aCheckout(t: TestContext, docker: string) {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'deploy'))
  await mkdir(join(folder, 'bin'))
  const files = ['compose.yaml', 'Dockerfile']
  for (const file of [...files, 'deploy/pin-images.sh']) await cp(root(file), join(folder, file))
  await writeFile(join(folder, 'bin/docker'), docker)
  await chmod(join(folder, 'bin/docker'), 0o755)
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
  return {
    pin: () => run('bash', [join(folder, 'deploy/pin-images.sh')], { env }),
    texts: async () =>
      (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).join('\n'),
  }
}
