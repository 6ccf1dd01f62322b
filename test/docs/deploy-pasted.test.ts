/** What an operator pastes from docs/run/deploy.md, in a folder that stands for the root of a machine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const page = await readFile(join(ROOT, 'docs/run/deploy.md'), 'utf8')
const [, systemd = ''] = /^## With systemd\n(.*?)^### /ms.exec(page) ?? []
const blocks = [...systemd.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text)

/** What only the machine of an operator has. Each notes how it was called. */
const STANDS_IN = ['useradd', 'chown', 'npm', 'lncli', 'systemctl']
const PLACES = /(?<=^|[\s'"=:@?&>(])\/(etc|opt|var|usr\/local|usr\/bin)\//gm

test('each step of docs/run/deploy.md works when it is pasted, and ends in a service, its command and its backup', async (t) => {
  const root = await temporaryFolder(t)
  const here = (text: string): string => text.replaceAll(PLACES, `${root}/$1/`)
  const machine = await aMachine(root, here)
  assert.ok(blocks.length >= 7)
  // All in one shell, as one pastes it. The macaroon is made on the node, and is copied by hand.
  await machine.paste(blocks.join('\n'))
  const called = await readFile(join(root, 'called'), 'utf8')
  for (const unit of ['mayfly', 'mayfly-backup.timer']) {
    assert.match(called, new RegExp(`^systemctl enable --now ${unit}$`, 'm'))
  }
  const units = await readdir(join(root, 'etc/systemd/system'))
  assert.deepEqual(units.toSorted(), [
    'mayfly-backup-failed.service',
    'mayfly-backup.service',
    'mayfly-backup.timer',
    'mayfly.service',
  ])
  const secret = join(root, 'etc/mayfly/secret')
  assert.match(await readFile(secret, 'utf8'), /^[0-9a-f]{64}\n$/)
  // Nobody else looks into the folder, and root alone writes there: chown is not real here.
  assert.equal((await stat(join(root, 'etc/mayfly'))).mode & 0o777, 0o750)

  const state = join(root, 'var/lib/mayfly')
  const { url } = await startProgram(t, join(state, 'data/mayfly.db'), {
    environment: { MAYFLY_SECRET_FILE: secret, MAYFLY_RATE_LIMITS: 'off' },
  })
  assert.equal((await fetch(`${url}/health`)).status, 200)
  assert.deepEqual(JSON.parse(await machine.run('mayfly', ['order', 'list', '--json'])).orders, [])
  const unit = await readFile(join(root, 'etc/systemd/system/mayfly-backup.service'), 'utf8')
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  await machine.run('bash', ['-c', `cd ${state} && exec ${here(command)}`], {
    BACKUP_MAYFLY: `${join(root, 'usr/bin/node')} ${join(root, 'opt/mayfly/bin/mayfly.mjs')}`,
    MAYFLY_SECRET_FILE: secret,
  })
  const backups = await readdir(join(root, 'var/lib/mayfly-backup'))
  assert.match(backups.join(' '), /^mayfly-[\dTZ-]+\.db$/)
  assert.match(unit, /^OnFailure=mayfly-backup-failed\.service$/m)
})

test('deploy/mayfly reads the settings as systemd does, and takes none from the shell of the operator', async (t) => {
  const root = await temporaryFolder(t)
  const here = (text: string): string => text.replaceAll(PLACES, `${root}/$1/`)
  const machine = await aMachine(root, here)
  await mkdir(join(root, 'etc/mayfly'), { recursive: true })
  await mkdir(join(root, 'usr/local/bin'), { recursive: true })
  const lines = ['# MAYFLY_PORT=1', '', 'MAYFLY_CONTACT="a b&touch x"', "MAYFLY_TERMS_URL='$(id)'"]
  await writeFile(join(root, 'etc/mayfly/mayfly.env'), lines.join('\n'))
  await cp(join(root, 'mayfly/deploy/mayfly'), join(root, 'usr/local/bin/mayfly'))
  await mkdir(join(root, 'opt/mayfly/bin'), { recursive: true })
  await writeFile(
    join(root, 'opt/mayfly/bin/mayfly.mjs'),
    'console.log(JSON.stringify([process.env, process.argv.slice(2)]))',
  )
  const out = await machine.run('mayfly', ['order', 'show', 'a  b'], { MAYFLY_PORT: '2' })
  const [environment, args] = JSON.parse(out)
  const names = Object.keys(environment).filter((name) => name.startsWith('MAYFLY_'))
  assert.deepEqual(names.toSorted(), ['MAYFLY_CONTACT', 'MAYFLY_TERMS_URL'])
  assert.equal(environment.MAYFLY_CONTACT, 'a b&touch x')
  assert.equal(environment.MAYFLY_TERMS_URL, '$(id)')
  assert.deepEqual(args, ['order', 'show', 'a  b'])
})

/** A machine with a checkout of Mayfly, whose programs that change a machine only note how they were called. */
async function aMachine(root: string, here: (text: string) => string) {
  const stubs = join(root, 'stubs')
  for (const folder of [
    'stubs',
    'usr/bin',
    'usr/local/bin',
    'etc/systemd/system',
    'opt',
    'var/lib/mayfly',
    'mayfly',
  ]) {
    await mkdir(join(root, folder), { recursive: true })
  }
  const scripts = {
    ...Object.fromEntries(STANDS_IN.map((name) => [name, `echo "${name} $*" >>${root}/called`])),
    id: 'echo 0',
    runuser: 'shift 3; exec "$@"',
  }
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(stubs, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  }
  await symlink(process.execPath, join(root, 'usr/bin/node'))
  for (const name of ['bin', 'src', 'node_modules', 'package.json']) {
    await symlink(join(ROOT, name), join(root, 'mayfly', name))
  }
  await cp(join(ROOT, 'deploy'), join(root, 'mayfly/deploy'), { recursive: true })
  for (const name of await readdir(join(root, 'mayfly/deploy'))) {
    const file = join(root, 'mayfly/deploy', name)
    await writeFile(file, here(await readFile(file, 'utf8')))
  }
  const PATH = `${stubs}:${join(root, 'usr/local/bin')}:${process.env.PATH}`
  const command = async (program: string, args: string[], env: Record<string, string> = {}) =>
    (await run(program, args, { cwd: root, env: { PATH, ...env } })).stdout
  return {
    run: command,
    paste: (text: string) => command('bash', ['-ec', here(text)]),
  }
}
