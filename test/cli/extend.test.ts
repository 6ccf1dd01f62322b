import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPurchases } from '../../src/cli/vault/purchases.ts'
import { containsToken } from '../../src/lib/ids.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import { SPARK_MS } from '../support/extension.ts'
import { aUser, interrupted, invoiceOf } from '../support/user.ts'

for (const product of ['catch', 'pulse']) {
  test(`a saved capability of ${product} is extended from a wallet, and its file has the new end`, async (t) => {
    const { cli } = await aUser(t)
    const { expiresAt } = await cli.json(['buy', product, '--name', 'mine'], WITH_WALLET)
    const ended = await cli.run(['extend', 'mine'], WITH_WALLET)
    assert.equal(ended.code, 0, ended.err)
    assert.equal(containsToken(ended.out + ended.err), false)
    const end = new Date(Date.parse(String(expiresAt)) + SPARK_MS).toISOString()
    assert.deepEqual(JSON.parse(ended.out), { name: 'mine', extended: true, expiresAt: end })
    assert.equal((await cli.json(['show', 'mine'])).expiresAt, end)
    assert.equal((await cli.json(['status', 'mine'])).expiresAt, end)
    assert.deepEqual(draftsOf(cli.folder), [])
  })
}

test('an extension that was killed is continued with the same invoice, and is paid once', async (t) => {
  const { cli, pay } = await aUser(t)
  const { expiresAt } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const first = cli.start(['extend', 'hooks'])
  const invoice = await invoiceOf(first)
  assert.match((await cli.run(['extend', 'hooks'])).err, /is extending hooks/)
  first.child.kill('SIGKILL')
  await first.ended
  await pay(invoice)
  const second = await cli.run(['extend', 'hooks'])
  assert.equal(second.code, 0, second.err)
  assert.match(second.err, /Continuing the extension of hooks/)
  const end = new Date(Date.parse(String(expiresAt)) + SPARK_MS).toISOString()
  assert.equal((await cli.json(['status', 'hooks'])).expiresAt, end)
  assert.deepEqual(draftsOf(cli.folder), [])
})

test('what has ended is not extended, and the next attempt begins anew', async (t) => {
  const { cli, server } = await aUser(t, { beat: 'pulse' })
  server.clock.advance(SPARK_MS)
  const { code, err } = await cli.run(['extend', 'beat'], WITH_WALLET)
  assert.equal(code, 4)
  assert.match(err, /It has ended, is used up or suspended/)
  assert.deepEqual(draftsOf(cli.folder), [])
})

test('a monitor that ends while its extension is paid is replaced, and the new one is saved beside it', async (t) => {
  const { cli, pay, server } = await aUser(t, { beat: 'pulse' })
  const invoice = await interrupted(cli, ['extend', 'beat'])
  const revealed = await cli.json(['show', 'beat', '--reveal'])
  await server.mayfly.pulse(revealed as { publicId: string; ownerToken: string }).destroy()
  await pay(invoice)
  const unproven = await cli.run(['extend', 'beat'])
  assert.equal(unproven.code, 1)
  assert.match(unproven.err, /asks for proof of this payment/)
  assert.equal(draftsOf(cli.folder).length, 1)
})

test('a whisper cannot be extended', async (t) => {
  const { cli } = await aUser(t)
  const sent = await cli.run(['whisper', 'send', '--name', 'word'], { ...WITH_WALLET, input: 'x' })
  assert.equal(sent.code, 0, sent.err)
  const { code, err } = await cli.run(['extend', 'word'])
  assert.equal(code, 2)
  assert.match(err, /a whisper, which cannot be extended/)
})

const draftsOf = (folder: string): string[] => openPurchases({ folder }).map(({ name }) => name)
