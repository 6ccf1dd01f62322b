import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { SDK_PHRASES } from '../../src/client/errors.ts'
import { temporaryFolder } from '../support/folder.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'
import { assertTyped } from './typed-examples.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const sdk = join(root, 'src/client/index.ts')
const page = await readFile(join(root, 'docs/sdk.md'), 'utf8')
const SHOWN_URL = 'http://127.0.0.1:8402'

test('the examples of docs/sdk.md are typed right', async (t) => {
  await assertTyped(t, moduleOf({ projectId: '', capability: '' }))
})

test('the examples of docs/sdk.md run against a server', async (t) => {
  const server = await startServer(t, { MAYFLY_GATE: 'on' })
  const project = await register(server, { credits: 100 })
  const text = moduleOf(project)
    .replaceAll(SHOWN_URL, server.url)
    .replaceAll("'mayfly/client'", `'${pathToFileURL(sdk)}'`)
  const path = join(await temporaryFolder(t), 'page.mts')
  await writeFile(path, text)
  const { stdout } = await promisify(execFile)(process.execPath, [path])
  for (const told of [
    '1 /github {"n":7}',
    "--url 'http://localhost:3000/hook/github?delivery=1'",
    'header missing X-Hub-Signature-256 The request has no',
    'the door code is 4711 door.txt',
    'backup operational',
    '1 GET /ping',
    'price above the ceiling 0 null',
  ]) {
    assert.ok(stdout.includes(told), `${told} in:\n${stdout}`)
  }
})

test('every phrase of the SDK is in the table of its errors', () => {
  const table = page.slice(page.indexOf('## Errors'))
  const shown = [...table.matchAll(/`([a-z ]+)`/g)].map(([, phrase]) => phrase)
  for (const phrase of SDK_PHRASES) assert.ok(shown.includes(phrase), `${phrase} in docs/sdk.md`)
})

/** All examples as one module, with what a reader has of his own. */
function moduleOf({ projectId, capability }: { projectId: string; capability: string }): string {
  const examples = [...page.matchAll(/^```ts\n(.*?)\n```$/gms)].map(([, text]) => text)
  assert.ok(examples.length >= 12)
  return `
const projectId = ${JSON.stringify(projectId)}
const capability = ${JSON.stringify(capability)}
const confirm = (bolt11: string): boolean => bolt11 !== ''
const save = async (text: string): Promise<void> => console.log(text.length)
async function show(bolt11: string, amountSats: number, expiresAt: string): Promise<void> {
  console.log(amountSats, expiresAt)
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ bolt11 })
  await fetch('${SHOWN_URL}/simulator/pay', { method: 'POST', headers, body })
}
${examples.join('\n')}
`
}
