import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { assertTyped } from './typed-examples.ts'

const page = await readFile(new URL('../../docs/switch.md', import.meta.url), 'utf8')
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )

test('the commands of docs/switch.md arm a switch', async (t) => {
  const { url } = await startServer(t, { MAYFLY_RATE_LIMITS: 'off' })
  const cli = await commandLine(t, url)
  const letter = join(await temporaryFolder(t), 'letter.txt')
  await writeFile(letter, 'Dear Alice')
  const commands = (blocks('sh')[0] ?? '').trim().split('\n')
  assert.ok(commands.length >= 6)
  let last = ''
  for (const command of commands) {
    const [mayfly, ...args] = command.replace('letter.txt', letter).split(' ')
    assert.equal(mayfly, 'mayfly')
    const ended = await cli.run(args, WITH_WALLET)
    assert.equal(ended.code, 0, `${command}: ${ended.err}`)
    last = ended.out
  }
  assert.equal((JSON.parse(last) as { switch: { state: string } }).switch.state, 'armed')
})

test('the example of docs/switch.md is typed right', async (t) => {
  await assertTyped(
    t,
    `import type { Mayfly, PayingMayfly, PulseCapability } from 'mayfly/client'
declare const mayfly: Mayfly, paying: PayingMayfly, monitor: PulseCapability, data: Uint8Array
${blocks('ts').join('\n')}`,
  )
})
