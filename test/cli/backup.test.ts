/** A backup of everything that is saved, and what it is worth on another machine. */

import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openPurchases } from '../../src/cli/vault/purchases.ts'
import { type CommandLine, commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { aUser, interrupted } from '../support/user.ts'

test('a backup has all that is saved, and an empty machine is the same user after its import, with a purchase that is unknown', async (t) => {
  const { cli, url, pay, file, invoice } = await aBackup(t)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const spent = (await cli.json(['budget'])).spentMsat
  const other = await commandLine(t, url)
  const done = await other.json(['import', file])
  assert.deepEqual(done, { capabilities: 2, purchases: 1, reads: 1 })
  assert.equal((await other.json(['status', 'hooks'])).status, 'active')
  assert.equal((await other.json(['budget'])).spentMsat, spent)
  const { code } = await cli.json(['show', 'note', '--reveal'])
  const read = ['whisper', 'read', '-', '--yes']
  const opened = await other.run(read, { input: String(code) })
  assert.deepEqual([opened.code, opened.out], [0, 'secret'])
  assert.deepEqual(
    await other.json(['import', file]),
    { capabilities: 0, purchases: 0, reads: 1 },
    'what is here already is not added again',
  )

  // No wallet here gets the invoice of the purchase. It is collected when it was paid.
  assert.equal(openPurchases(other)[0]?.record.state, 'paying')
  const refused = await other.run(['buy', 'pulse'], WITH_WALLET)
  assert.match(refused.err, /begun elsewhere, and nobody here knows which wallet may have paid it/)
  assert.equal((await other.json(['budget'])).spentMsat, spent)
  // With the wallet that nobody here knows.
  await pay(invoice)
  const bought = await other.json(['buy', 'pulse'], WITH_WALLET)
  const again = await cli.json(['buy', 'pulse', '--resume', 'beat'], WITH_WALLET)
  assert.equal(bought.publicId, again.publicId)
})

test('a purchase that is exported by its name is unknown elsewhere, and is gone on with there', async (t) => {
  const { cli, url, pay, invoice } = await aBackup(t)
  const { out } = await cli.run(['export', 'beat'])
  let other = cli
  // Whatever its state is there now: it may go on there after this.
  for (const state of ['failed', 'quoted']) {
    other = await commandLine(t, url)
    const input = out.replace('"quoted"', `"${state}"`)
    const done = await other.json(['import', '-'], { input })
    assert.deepEqual(done, { capabilities: 0, purchases: 1, reads: 0 })
    assert.equal(openPurchases(other)[0]?.record.state, 'paying', state)
  }
  await pay(invoice)
  const bought = await other.json(['buy', 'pulse', '--resume', 'beat'])
  assert.equal(bought.product, 'pulse')
})

test('a backup adds nothing where one of its names is another thing, or where it is damaged', async (t) => {
  const { url, file } = await aBackup(t)
  const other = await commandLine(t, url)
  await other.json(['buy', 'catch', '--name', 'note'], WITH_WALLET)
  const taken = await other.run(['import', file])
  assert.deepEqual(
    [taken.code, taken.err],
    [2, 'Something else is saved as note here, so nothing was imported.\n'],
  )
  const damaged = JSON.parse(readFileSync(file, 'utf8'))
  damaged.backup.purchases[0].record.invoices = 'none'
  writeFileSync(file, JSON.stringify(damaged))
  assert.equal((await other.run(['import', file])).code, 2)
  const listed = (await other.json(['list'])) as unknown as unknown[]
  assert.equal(listed.length, 1)
})

/** Somebody with two capabilities, an interrupted purchase, and a read that is not opened; and the backup of that. */
async function aBackup(t: After) {
  const { cli, url, pay } = await aUser(t, { hooks: 'catch' })
  const send = ['whisper', 'send', '--name', 'note']
  const { code } = await cli.json(send, { ...WITH_WALLET, input: 'secret' })
  await anUnopenedRead(t, cli, String(code))
  const invoice = await interrupted(cli, ['buy', 'pulse', '--name', 'beat'])
  const file = join(await temporaryFolder(t), 'backup.json')
  await cli.json(['export', '--all', '--out', file])
  return { cli, url, pay, file, invoice }
}

/** A read whose content cannot be written stays in the vault. */
async function anUnopenedRead(t: After, cli: CommandLine, code: string): Promise<void> {
  const out = join(await temporaryFolder(t), 'out')
  // The last character of a code has bits that must be zero.
  const altered = code.replace(/.(?=.$)/, (last) => (last === 'A' ? 'B' : 'A'))
  const failed = await cli.run(['whisper', 'read', '-', '--yes', '--out', out], { input: altered })
  assert.match(failed.err, /The read is spent, and its content is kept/)
}
