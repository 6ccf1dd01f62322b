/** Whoever has nothing left but a wallet gets what it paid for. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { openOrder } from '../support/buying.ts'
import { commandLine } from '../support/command-line.ts'
import { extend } from '../support/extension.ts'
import { anInvoice } from '../support/invoice.ts'
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

test('what was sold in place of an extension is recovered under the name that was given, or beside the old one', async (t) => {
  for (const [options, name] of [
    [['--name', 'again'], 'again'],
    [[], 'beat-2'],
  ] as const) {
    const { cli, server } = await aUser(t, { beat: 'pulse' })
    const bolt11 = await interrupted(cli, ['extend', 'beat'])
    const monitor = await cli.json(['show', 'beat', '--reveal'])
    await server.mayfly.pulse(monitor as { publicId: string; ownerToken: string }).destroy()
    const input = await server.pay(bolt11)
    assert.equal((await cli.json(['recover', bolt11, ...options], { input })).name, name)
    assert.equal((await cli.json(['status', name])).state, 'waiting')
  }
})

test('the proof of a purchase that was begun here goes to its own service alone', async (t) => {
  const { cli, server } = await aUser(t)
  const invoice = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  const input = await server.pay(invoice)
  const other = await startServer(t)
  const environment = { MAYFLY_URL: other.url }
  const elsewhere = await cli.run(['recover', invoice], { input, environment })
  assert.equal(elsewhere.code, 2)
  assert.match(elsewhere.err, new RegExp(`That is of ${server.url}`))
  assert.deepEqual(await statesOf(cli), ['hooks buying'])
  assert.equal((await cli.json(['recover', invoice], { input })).baseUrl, server.url)
})

test('an invoice of the same payment hash is another purchase than the one that was begun here', async (t) => {
  const { cli, server } = await aUser(t)
  const invoice = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  const { paymentHash } = decodeInvoice(invoice)
  const twin = anInvoice({ paymentHash, amountMsat: 100_000 })
  const other = await startServer(t)
  const environment = { MAYFLY_URL: other.url }
  const recovered = await cli.run(['recover', twin], {
    input: await server.pay(invoice),
    environment,
  })
  assert.match(recovered.err, /order not found/)
  assert.deepEqual(await statesOf(cli), ['hooks buying'])
})

test('a name that is taken is said before the service is asked', async (t) => {
  const { cli, server } = await aUser(t, { hooks: 'catch' })
  const { bolt11 } = await openOrder(server)
  const recover = ['recover', bolt11, '--name', 'hooks']
  const { err } = await cli.run(recover, { input: 'ab'.repeat(32) })
  assert.match(err, /A capability named hooks already exists/)
})
