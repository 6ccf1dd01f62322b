import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startListening } from '../../src/cli/vault/listening.ts'
import { findPurchase, leavePurchase } from '../../src/cli/vault/purchases.ts'
import { inVault, otherProcess, vaultFile } from '../../src/cli/vault/vault.ts'
import { BIN, ENVIRONMENT } from '../support/bin.ts'
import { type CommandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { paidInvoices } from '../support/mcp-money.ts'
import { aUser } from '../support/user.ts'
import { inVaultOf } from '../support/vault.ts'

/** Root may write everywhere. */
const STRANGER = process.getuid?.() === 0 ? { uid: 65_534 } : {}

test('the vault and the folders that are made for it are for their owner alone', async (t) => {
  const folders = [await temporaryFolder(t)]
  for (const name of ['share', 'mayfly']) folders.push(join(folders.at(-1) ?? '', name))
  const folder = folders.at(-1) ?? ''
  const umask = process.umask(0)
  inVault({ folder }, () => undefined)
  process.umask(umask)
  const modes = [...folders.slice(1), vaultFile(folder)].map((path) => statSync(path).mode)
  assert.deepEqual(
    modes.map((mode) => mode & 0o777),
    [0o700, 0o700, 0o600],
  )
})

test('what is written is on the disk, also after a power cut', async (t) => {
  const place = { folder: await temporaryFolder(t) }
  const asked = (db: DatabaseSync) => db.prepare('pragma synchronous').get()?.synchronous
  // SQLite calls it extra.
  assert.equal(inVault(place, asked), 3)
})

test('another process holds what it has written within the hour while it lives, whoever runs it', async (t) => {
  const [other, now] = [process.ppid, Date.now()]
  const place = { folder: await temporaryFolder(t) }
  const insert = `insert into purchase values ('key', 'hooks', 1, '{"version":1}', $other, $now)`
  inVault(place, (db) => db.prepare(insert).run({ other, now }))
  leavePurchase(place, 'hooks')
  assert.equal(findPurchase(place, 'hooks')?.heldBy, other)
  assert.equal(otherProcess(process.pid, now), null)
  assert.equal(otherProcess(null, now), null)
  assert.equal(otherProcess(other, now), other)
  assert.equal(otherProcess(other, now - 3_600_001), null, 'its id may be of another one by now')
  for (const [code, holds] of Object.entries({ EPERM: other, ESRCH: null })) {
    const kill = t.mock.method(process, 'kill', () => {
      throw Object.assign(new Error(code), { code })
    })
    assert.equal(otherProcess(other, now), holds, code)
    kill.mock.restore()
  }
})

test('a damaged vault pays nothing, says why, and is as it was when its backup is back', async (t) => {
  const { cli, paid } = await aBuyer(t)
  const file = vaultFile(cli.folder)
  copyFileSync(file, `${file}.backup`)
  const whole = readFileSync(file)
  for (const damage of [
    Buffer.from('not a database, but longer than its header'.repeat(100)),
    whole.subarray(0, whole.length - 4096),
  ]) {
    writeFileSync(file, damage)
    await refuses(cli, ['buy', 'pulse', '--name', 'beat'])
    await refuses(cli, ['list'])
    await refuses(cli, ['status', 'hooks'])
    await refuses(cli, ['budget', '--reset', '--yes'])
    assert.deepEqual(readFileSync(file), damage, 'nobody writes over what may be restored')
  }
  assert.equal(await paid(), 1)
  copyFileSync(`${file}.backup`, file)
  assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
})

test('where the folder can only be read, what is saved is used, and nothing is paid', async (t) => {
  const { cli, paid } = await aBuyer(t)
  await cli.run(['buy', 'pulse', '--name', 'alive'], WITH_WALLET)
  giveToStranger(cli)
  chmodSync(vaultFile(cli.folder), 0o400)
  chmodSync(cli.folder, 0o500)
  assert.equal((await cli.json(['status', 'hooks'], STRANGER)).status, 'active')
  await refuses(cli, ['buy', 'pulse', '--name', 'beat'], STRANGER)
  await refuses(cli, ['forget', 'hooks', '--yes'], STRANGER)
  await refuses(cli, ['pulse', 'rotate', 'alive'], STRANGER)
  assert.equal((await cli.run(['ping', 'alive'], STRANGER)).code, 0)
  assert.equal((await cli.run(['budget'], STRANGER)).code, 0)
  chmodSync(vaultFile(cli.folder), 0o000)
  await refuses(cli, ['list'], STRANGER)
  assert.equal(await paid(), 2)
})

test('a vault that takes nothing more once a payment has begun does not say that nothing was paid', async (t) => {
  const { cli, paid } = await aBuyer(t)
  const full = `create trigger full before update on purchase when old.record like '%"state":"paying"%'
    begin select raise(abort, 'database or disk is full'); end`
  inVaultOf(cli.folder, full)
  const { code, err } = await cli.run(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  assert.equal(code, 1)
  assert.match(err, /^beat may be paid\. .*disk is full.*mayfly buy pulse --resume beat$/m)
  inVaultOf(cli.folder, 'drop trigger full')
  await cli.json(['buy', 'pulse', '--resume', 'beat'], WITH_WALLET)
  assert.equal(await paid(), 2)
})

test('on a full disk nothing is paid, and nothing is lost', async (t) => {
  const { cli, url, paid } = await aBuyer(t)
  // Files of this process grow no further (setrlimit(2), RLIMIT_FSIZE).
  const full = spawn('prlimit', ['--fsize=1024', process.execPath, BIN, 'buy', 'pulse'], {
    env: {
      ...ENVIRONMENT,
      ...WITH_WALLET.environment,
      MAYFLY_URL: url,
      XDG_DATA_HOME: dirname(cli.folder),
    },
  })
  const [err, [code]] = await Promise.all([text(full.stderr), once(full, 'exit')])
  assert.match(err, /vault\.db cannot be read or written, so nothing more is paid/)
  assert.equal(code, 1)
  assert.equal(await paid(), 1)
  assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
  const names = (await cli.json(['list'])) as unknown as { name: string }[]
  assert.deepEqual(
    names.map(({ name }) => name),
    ['hooks'],
  )
})

test('what is forgotten is nowhere in the file any more', async (t) => {
  const { cli } = await aBuyer(t)
  const { out } = await cli.run(['export', 'hooks'])
  const [token = assert.fail()] = /catch_owner_\w+/.exec(out) ?? []
  const [inbox = assert.fail()] = /catch_[0-9A-Za-z]{22}/.exec(out) ?? []
  // How far its listeners got goes with it.
  startListening(cli, inbox).failed(1)
  const isThere = () =>
    [token, inbox].map((text) => readFileSync(vaultFile(cli.folder)).includes(text))
  assert.deepEqual(isThere(), [true, true])
  assert.equal((await cli.run(['forget', 'hooks', '--yes'])).code, 0)
  assert.deepEqual(isThere(), [false, false])
})

test('of ten commands that save under one name at once one does, and all others under their own', async (t) => {
  const { cli } = await aBuyer(t)
  const { out: input } = await cli.run(['export', 'hooks'])
  const names = [...Array(10).fill('same'), ...Array.from({ length: 5 }, (_, i) => `own-${i}`)]
  const ended = await Promise.all(
    names.map((name) => cli.run(['import', '-', '--name', name], { input })),
  )
  const saved = ended.flatMap(({ code }, i) => (code === 0 ? [names[i]] : []))
  assert.deepEqual(saved.sort(), ['own-0', 'own-1', 'own-2', 'own-3', 'own-4', 'same'])
})

test('a process that is killed in the middle of a transaction blocks nobody, and leaves nothing half', async (t) => {
  const { cli } = await aBuyer(t)
  const holder = spawn(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { DatabaseSync } from 'node:sqlite'
     const db = new DatabaseSync(process.argv[1])
     db.exec("begin exclusive; pragma cache_size = 1; delete from capability")
     console.log('held'); setInterval(() => {}, 1000)`,
    vaultFile(cli.folder),
  ])
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
  assert.equal(statSync(vaultFile(cli.folder)).mode & 0o777, 0o600)
})

/** Somebody who has bought an inbox. */
async function aBuyer(t: After) {
  const { cli, url, server } = await aUser(t, { hooks: 'catch' })
  return { cli, url, paid: () => paidInvoices(server) }
}

async function refuses(cli: CommandLine, args: string[], options: { uid?: number } = {}) {
  const { code, err } = await cli.run(args, { ...WITH_WALLET, ...options })
  assert.match(err, /vault\.db cannot be read or written, so nothing more is paid/, args.join(' '))
  assert.equal(code, 1, args.join(' '))
}

function giveToStranger({ folder }: CommandLine): void {
  const { uid } = STRANGER
  if (uid === undefined) return
  for (const each of [dirname(folder), folder, vaultFile(folder)]) chownSync(each, uid, uid)
}
