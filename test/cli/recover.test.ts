/** Whoever has nothing left but a wallet gets what it paid for. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { openOrder } from '../support/buying.ts'
import { commandLine } from '../support/command-line.ts'
import { extend } from '../support/extension.ts'
import { startServer } from '../support/server.ts'
import { aUser, interrupted, statesOf } from '../support/user.ts'

test('a purchase is recovered by its invoice and preimage, in the SDK and on the command line', async (t) => {
  const server = await startServer(t)
  const { bolt11 } = await openOrder(server)
  const preimage = await server.pay(bolt11)
  const found = await server.mayfly.recover({ bolt11, preimage })
  assert.ok('product' in found && found.product === 'catch')

  const cli = await commandLine(t, server.url)
  const recover = ['recover', `lightning:${bolt11.toUpperCase()}`, '--name', 'hooks']
  const saved = await cli.json(recover, { input: `${preimage}\n` })
  assert.equal(saved.publicId, found.publicId)
  assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
  const wrong = await cli.run(['recover', bolt11], { input: 'ab'.repeat(32) })
  assert.equal(wrong.code, 4)
  const none = await cli.run(['recover', 'lnbc1'], { input: preimage })
  assert.equal(none.code, 2)
})

test('a purchase that was begun here is recovered under its own name, and is over then', async (t) => {
  const { cli, server } = await aUser(t)
  const bolt11 = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  const preimage = await server.pay(bolt11)
  assert.equal((await cli.json(['recover', bolt11], { input: preimage })).name, 'hooks')
  assert.deepEqual(await statesOf(cli), ['hooks saved'])
})

test('an extension that was paid is recovered as its new end', async (t) => {
  const server = await startServer(t)
  const bought = await openOrder(server)
  const preimage = await server.pay(bought.bolt11)
  const inbox = await server.mayfly.recover({ bolt11: bought.bolt11, preimage })
  assert.ok('product' in inbox && inbox.product === 'catch')
  const quoted = await extend(server, inbox, { key: randomUUID() })
  const { bolt11 } = JSON.parse(quoted.text) as { bolt11: string }
  const proof = { bolt11, preimage: await server.pay(bolt11) }
  const { expiresAt } = await server.mayfly.recover(proof)
  assert.ok(Date.parse(expiresAt) > Date.parse(inbox.expiresAt))
})
