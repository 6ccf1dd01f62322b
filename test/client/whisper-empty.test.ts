import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { sealWhisper } from '../../src/client/index.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { aUser } from '../support/user.ts'

const data = new Uint8Array()
const nothing = { name: 'MayflyError', phrase: 'nothing to send', status: 0 }

test('the SDK sells nothing empty, and asks for no quote', async (t) => {
  const server = await startServer(t)
  await assert.rejects(sealWhisper({ data }), nothing)
  const onInvoice = () => assert.fail('an invoice')
  await assert.rejects(server.mayfly.buyWhisper({ planId: 'spark', data, onInvoice }), nothing)
  assert.deepEqual(await query(server, 'select order_id from purchase_order'), [])
})

test('the command line sells nothing empty, from a pipe that broke or from an empty file', async (t) => {
  const { cli, server } = await aUser(t)
  const empty = join(await temporaryFolder(t), 'empty.txt')
  await writeFile(empty, '')
  for (const args of [
    ['whisper', 'send'],
    ['buy', 'whisper'],
    ['whisper', 'send', empty],
  ]) {
    const { code, out, err } = await cli.run(args, { ...WITH_WALLET, input: '' })
    assert.equal(code, 2)
    assert.equal(out, '')
    assert.match(err, /^There is nothing to send: .+ Nothing was bought\.\n$/)
  }
  assert.deepEqual(await query(server, 'select order_id from purchase_order'), [])
  assert.deepEqual(await cli.json(['list']), [])
})
