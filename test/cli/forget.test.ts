import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { ownPort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { between } from '../support/serving.ts'
import { aUser, interrupted, statesOf } from '../support/user.ts'
import { putSaved, savedText } from '../support/vault.ts'

const DAY = 24 * 60 * 60 * 1000

test('forgetting a purchase that is paid collects it, and keeps it', async (t) => {
  const { cli, server } = await aUser(t)
  const invoice = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  await server.pay(invoice)
  const refused = await cli.run(['forget', 'hooks'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /hooks is paid, so it was collected and saved\./)
  assert.deepEqual(await statesOf(cli), ['hooks saved'])
  assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
})

test('forgetting a purchase whose invoice still stands is refused, and one that ended is not', async (t) => {
  const { cli, server } = await aUser(t)
  await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  const refused = await cli.run(['forget', 'hooks'])
  assert.equal(refused.code, 2)
  assert.match(refused.err, /not paid yet and still stands.*--yes/)
  assert.deepEqual(await statesOf(cli), ['hooks buying'])
  server.clock.advance(DAY)
  assert.equal((await cli.run(['forget', 'hooks'])).code, 0)
  assert.deepEqual(await statesOf(cli), [])
})

for (const isBought of [false, true]) {
  const meanwhile = isBought ? 'has bought' : 'is paying'
  test(`forgetting a purchase that failed leaves what another command ${meanwhile} meanwhile`, async (t) => {
    const server = await startServer(t)
    const polled = Promise.withResolvers<ServerResponse>()
    const paying = Promise.withResolvers<void>()
    let isBroke = true
    const url = await between(t, server.url, (path, response) => {
      const isPayment = path === '/simulator/pay'
      if (isPayment && isBroke) response.writeHead(400).end('{}')
      else if (isPayment && !isBought) paying.resolve()
      else if (isBroke && path.startsWith('/api/payments/order_')) polled.resolve(response)
      else return false
      return true
    })
    const cli = await commandLine(t, url)
    const buy = ['buy', 'catch', '--name', 'hooks']
    assert.equal((await cli.run(buy, WITH_WALLET)).code, 3)
    const forgetting = cli.run(['forget', 'hooks'])
    const answer = await polled.promise
    isBroke = false
    const other = cli.start(buy, WITH_WALLET)
    await (isBought ? other.ended : paying.promise)
    answer.writeHead(402).end('{"settled":false}')
    const { code, err } = await forgetting
    assert.equal(code, 1)
    assert.match(err, /hooks has changed meanwhile, so nothing was forgotten/)
    assert.deepEqual(await statesOf(cli), [isBought ? 'hooks saved' : 'hooks buying'])
    other.child.kill('SIGKILL')
    await other.ended
  })
}

test('forgetting what may be paid, or good, is refused while the service does not answer, and goes with --yes', async (t) => {
  const { cli, server } = await aUser(t, { hooks: 'catch' }, await ownPort())
  const invoice = await interrupted(cli, ['buy', 'pulse', '--name', 'beat'])
  await server.pay(invoice)
  await server.stop()
  for (const [name, says] of [
    ['beat', /may be paid.*does not answer.*--yes/],
    ['hooks', /that may be good until .*does not answer/],
  ] as const) {
    const refused = await cli.run(['forget', name])
    assert.equal(refused.code, 2)
    assert.match(refused.err, says)
    assert.ok((await statesOf(cli)).some((state) => state.startsWith(name)))
    assert.equal((await cli.run(['forget', name, '--yes'])).code, 0)
  }
  assert.deepEqual(await statesOf(cli), [])
})

test('forgetting what is still good is refused, with how to end it, and what is over is not', async (t) => {
  const { cli, server } = await aUser(t, { hooks: 'catch', beat: 'pulse' })
  await cli.json(['whisper', 'send', '--name', 'note'], { ...WITH_WALLET, input: 'x' })
  for (const name of ['hooks', 'beat']) {
    const refused = await cli.run(['forget', name])
    assert.equal(refused.code, 2)
    assert.match(
      refused.err,
      new RegExp(`the only copy of what opens ${name}, .* that is good until`),
    )
    assert.match(refused.err, new RegExp(`mayfly destroy ${name}`))
    assert.match(refused.err, /^This forgets .*[^.]\. Add --yes to confirm\.\n$/)
  }
  const whisper = await cli.run(['forget', 'note'])
  assert.equal(whisper.code, 2)
  assert.match(
    whisper.err,
    /the only copy of what opens note, a whisper that is good until [^ ]+Z\. Add --yes to confirm\.\n$/,
  )
  assert.deepEqual(await statesOf(cli), ['beat saved', 'hooks saved', 'note saved'])

  server.clock.advance(DAY)
  assert.equal((await cli.run(['forget', 'hooks'])).code, 0)
  assert.equal((await cli.run(['forget', 'beat'])).code, 0)
  putSaved(
    cli.folder,
    'note',
    savedText(cli.folder, 'note').replace(
      /"expiresAt": ?"[^"]+"/,
      '"expiresAt": "2020-01-01T00:00:00.000Z"',
    ),
  )
  assert.equal((await cli.run(['forget', 'note'])).code, 0)
  assert.deepEqual(await statesOf(cli), [])
})

test('forgetting what was destroyed elsewhere asks nothing', async (t) => {
  const { cli, server } = await aUser(t, { hooks: 'catch' })
  const { publicId, ownerToken } = await cli.json(['show', 'hooks', '--reveal'])
  const destroyed = await fetch(`${server.url}/api/catch/${publicId}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ownerToken}` },
  })
  assert.equal(destroyed.status, 204)
  assert.equal((await cli.run(['forget', 'hooks'])).code, 0)
})

test('forgetting what is damaged is refused: what it was paid for is unknown', async (t) => {
  const { cli } = await aUser(t, { hooks: 'catch', beat: 'pulse' })
  putSaved(cli.folder, 'hooks', '{')
  assert.deepEqual(await statesOf(cli), ['beat saved', 'hooks unreadable'])
  const refused = await cli.run(['forget', 'hooks'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /is not a capability.*forget hooks --yes/)
  assert.equal((await cli.run(['forget', 'hooks', '--yes'])).code, 0)
  assert.equal((await cli.run(['forget', 'hooks', '--yes'])).code, 4)
  assert.deepEqual(await statesOf(cli), ['beat saved'])
})
