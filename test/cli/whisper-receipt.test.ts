import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containsToken } from '../../src/lib/ids.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import { aUser } from '../support/user.ts'

test('whoever sends a whisper with a receipt sees each read, and can destroy it', async (t) => {
  const { cli } = await aUser(t)
  const send = ['whisper', 'send', '--receipt', '--reads', '2', '--name', 'note']
  const sent = await cli.run(send, { ...WITH_WALLET, input: 'secret' })
  assert.equal(sent.code, 0, sent.err)
  const { code, receiptToken } = JSON.parse(sent.out) as Record<string, string>
  assert.equal(receiptToken, undefined, 'it stays in the saved file')
  const receipt = ['status', 'note']
  assert.equal((await cli.json(receipt)).readsSpent, 0)
  assert.equal((await cli.run(['whisper', 'read', '-'], { input: `${code}\n` })).out, 'secret')

  const seen = await cli.json(receipt)
  assert.deepEqual([seen.state, seen.readsSpent, seen.readsLeft], ['active', 1, 1])
  assert.equal((await cli.run(['destroy', 'note'])).code, 2, 'asked, and nobody answers')
  const destroyed = await cli.run(['destroy', 'note', '--yes'])
  assert.equal(destroyed.code, 0, destroyed.err)
  assert.equal(containsToken(destroyed.out), false)
  assert.equal((await cli.json(receipt)).state, 'destroyed')
  assert.equal((await cli.run(['whisper', 'read', '-'], { input: `${code}\n` })).code, 4)
  assert.equal((await cli.run(['destroy', 'note', '--yes'])).code, 4)
})

test('a whisper without a receipt has none to show, and the command says what to do', async (t) => {
  const { cli } = await aUser(t)
  await cli.run(['whisper', 'send', '--name', 'plain'], { ...WITH_WALLET, input: 'secret' })
  const plain = await cli.run(['status', 'plain'])
  assert.deepEqual([plain.code, /--receipt/.test(plain.err)], [2, true])
})
