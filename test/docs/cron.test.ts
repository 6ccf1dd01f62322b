import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { BIN } from '../support/bin.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const text = await readFile(new URL('../../docs/pulse.md', import.meta.url), 'utf8')
const page = text.slice(text.indexOf('\n## Jobs that ping\n'))
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )

test('the lines of docs/pulse.md ping from a home folder without the owner token', async (t) => {
  const { url } = await startServer(t)
  const owner = await commandLine(t, url)
  await owner.json(['buy', 'pulse', '--name', 'backup'], WITH_WALLET)
  const home = await temporaryFolder(t)
  const bin = join(home, 'bin')
  await mkdir(bin)
  await symlink(BIN, join(bin, 'mayfly'))
  await symlink(process.execPath, join(bin, 'node'))
  await writeFile(join(home, 'backup.sh'), '#!/bin/sh\necho saved\n', { mode: 0o755 })
  /** As cron runs a line: with these variables alone, in the home folder. */
  const asCron = (line: string): Promise<unknown> =>
    run('/bin/sh', ['-c', line], {
      cwd: home,
      env: {
        HOME: home,
        LOGNAME: 'job',
        SHELL: '/bin/sh',
        PATH: `${bin}${delimiter}/usr/bin:/bin`,
      },
    })

  const [written = '', imported = ''] = (blocks('sh')[0] ?? '').trim().split('\n')
  const [, exported] = /^mayfly (export .*) > backup\.json$/.exec(written) ?? []
  const { out } = await owner.run((exported ?? '').split(' '))
  await writeFile(join(home, 'backup.json'), out)
  await asCron(imported)
  const asCurl = (blocks('sh')[1] ?? '')
    .trim()
    .replace(/^mayfly /, '')
    .split(' ')
  await owner.run(asCurl.map((arg) => (arg === 'backup.curl' ? join(home, arg) : arg)))

  const lines = blocks('crontab')
    .flatMap((block) => block.trim().split('\n'))
    .filter((line) => !line.startsWith('PATH='))
  assert.equal(lines.length, 2)
  for (const line of lines) await asCron(line.replace(/^(?:\S+ ){5}/, ''))
  assert.equal(await readFile(join(home, 'backup.log'), 'utf8'), 'saved\nsaved\n')
  const { acceptedHeartbeatCount } = await owner.json(['status', 'backup'])
  assert.equal(acceptedHeartbeatCount, 3, 'a start, a success, and the ping of curl')
})
