import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const text = (file: string): Promise<string> => readFile(join(ROOT, file), 'utf8')

/** Run by hand: each takes minutes, or a Python, a Go or an lnget that is not there. Their programs must exist. */
const BY_HAND = [
  ...['screenshots', 'contract:clients', 'contract:mcp', 'contract:mcp-hosts', 'fuzz', 'regtest'],
  ...[
    'contract:proxies',
    'contract:runtimes',
    'contract:ldk',
    'contract:firefox',
    'contract:webkit',
    'contract:lnget',
  ],
  ...['drill:standby', 'drill:pgbouncer', 'drill:upgrade', 'check:alerts', 'check:units'],
  ...['bench', 'bench:soak', 'abuse', 'simulate', 'simulate:buyers', 'mutate'],
]

/** It runs before the program. */
const PREFLIGHT = /\S*scripts\/preflight\.mjs/

const table = /^## Commands\n\n([\s\S]*?)\n\n/m.exec(await text('AGENTS.md'))?.[1] ?? ''
const commands = [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, command = '']) => command)
const scripts = (JSON.parse(await text('package.json')) as { scripts: Record<string, string> })
  .scripts

suite('the commands of AGENTS.md', () => {
  test('each command of AGENTS.md is there', () => {
    assert.ok(commands.includes('npm test') && commands.includes('.ci/run'))
    for (const command of commands) {
      const [, script] = /^npm (?:run )?([a-z:-]+)$/.exec(command) ?? []
      if (script === undefined || script === 'ci') continue
      assert.ok(script in scripts, `${command} has no script`)
    }
  })

  test('each command of AGENTS.md is run by .ci/run, or names a program that is there', async () => {
    const ci = await text('.ci/run')
    const [, listed = ''] = /for suite in ([^;]+);/.exec(ci) ?? []
    const suites = [...listed.matchAll(/'([^']+)'/g)].map(([, name = '']) => name)
    const nightly = (scripts['test:all'] ?? '').split(' && ')
    const inCi = [...suites.map((name) => (name === 'test' ? 'npm test' : `npm run ${name}`))]
    const byCi = (command: string): boolean =>
      command === '.ci/run' ||
      inCi.includes(command) ||
      ci.split('\n').some((line) => line === command || line.startsWith(`${command} -- `))
    assert.match(ci, /MAYFLY_PORT=0 .* npm start/)
    // `check` runs the same two programs, and writes nothing.
    const covered = ['npm start', 'npm run fix', 'npm run generate', 'npm run test:all', ...nightly]
    for (const command of commands) {
      if (byCi(command) || covered.includes(command) || command.startsWith('npx ')) continue
      const [, file] = /^node (\S+\.ts)/.exec(command) ?? []
      if (file !== undefined && existsSync(join(ROOT, file))) continue
      const script = command.slice('npm run '.length)
      assert.ok(BY_HAND.includes(script), `nothing runs ${command}`)
      const own = (scripts[script] ?? '').replace(PREFLIGHT, '')
      const [program = ''] = /\b(?:scripts|clients|bench|test|mutation)\/\S+/.exec(own) ?? []
      assert.ok(program !== '' && existsSync(join(ROOT, program)), `${command} has no program`)
    }
  })
})
