import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'

const root = new URL('../../', import.meta.url)
const readme = await readFile(new URL('README.md', root), 'utf8')

/** What the page says where a service listens that was started as it says. */
const SHOWN_URL = 'http://127.0.0.1:8402'
const BETWEEN = '----8<----'

test('the README starts the service and the tests with one line each', () => {
  assert.deepEqual(
    steps('Start').map(({ command }) => command),
    ['npm ci && npm start', 'npm ci && npm test'],
  )
})

test('the walk of the README at the terminal ends in the body of its webhook', async (t) => {
  const { url } = await startServer(t)
  const walk = steps('Try it: one minute, no money')
  const outputs = await runInOneShell(walk, url, {
    MAYFLY_URL: url,
    XDG_DATA_HOME: await temporaryFolder(t),
  })
  const [bought = '', sent = ''] = outputs
  assert.match(bought, /"ingestUrl":/)
  assert.deepEqual(sent.split('\n').at(-1), walk.at(-1)?.shown)
})

test('the URL of the README shows an invoice, and the lines below it pay that and bring an inbox', async (t) => {
  const { url } = await startServer(t)
  const [asking, buying] = steps('Buy with HTTP')
  assert.ok(asking && buying)
  let answer = await run(asking.command)
  assert.deepEqual(shape(answer), shape(asking.shown))
  const seen: Record<string, string> = {}
  for (const line of buying.command.split('\n')) {
    Object.assign(seen, JSON.parse(answer))
    answer = await run(line.replaceAll(/<(\w+)>/g, (_, name: string) => seen[name] ?? ''))
  }
  assert.match(answer, /"settled":true,.*"ownerToken":"catch_owner_/)

  async function run(command: string): Promise<string> {
    const [output = ''] = await runInOneShell([{ command, shown: '' }], url)
    return output
  }
})

/** A block to paste, and the block below it with what comes out. */
type Step = { command: string; shown: string }

/** The steps of one section, from its heading to the next. */
function steps(heading: string): Step[] {
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))
  assert.ok(section, `the README has a section ${heading}`)
  const blocks = section.matchAll(/^```sh\n(.*?)\n```(?:\n\n```(?:json|text)\n(.*?)\n```)?$/gms)
  return [...blocks].map(([, command = '', shown = '']) => ({ command, shown }))
}

/** Runs all blocks as one script, as if they were pasted one after another; the output of each. */
async function runInOneShell(
  walk: Step[],
  url: string,
  environment: Record<string, string> = {},
): Promise<string[]> {
  assert.notEqual(walk.length, 0)
  const script = walk
    .map(({ command }) => command.replaceAll(SHOWN_URL, url))
    .join(`\nprintf '%s\\n' '${BETWEEN}'\n`)
  const shell = spawn('sh', ['-eu'], {
    cwd: fileURLToPath(root),
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  shell.stdin.end(`${script}\n`)
  let output = ''
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const code = await new Promise((resolve, reject) => {
    shell.on('error', reject)
    shell.on('close', resolve)
  })
  assert.equal(code, 0, `the shell ended with ${code} after:\n${output}`)
  return output.split(`${BETWEEN}\n`).map((part) => part.trimEnd())
}

/** The members and types of JSON, or any other text as it is. */
function shape(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' ? shapeOf(value) : value
}

function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]))
}
