/** Which service a name belongs to, and what that said of it last. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { ownPort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { aUser, statesOf } from '../support/user.ts'

test('what is saved is sent to its own service, and no other address gets its tokens', async (t) => {
  const [mine, other] = await Promise.all([startServer(t), startServer(t)])
  const cli = await commandLine(t, mine.url)
  await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  other.logged.length = 0
  const asked = [
    await cli.run(['status', 'hooks', '--url', other.url]),
    await cli.run(['status', 'hooks'], { environment: { MAYFLY_URL: other.url } }),
    await cli.run(['extend', 'hooks', '--url', other.url], WITH_WALLET),
    await cli.run(['destroy', 'hooks', '--yes', '--url', other.url]),
  ]
  for (const { code, err } of asked) {
    assert.equal(code, 2)
    assert.match(
      err,
      new RegExp(`^That is of ${mine.url}, and (--url|MAYFLY_URL) says ${other.url}`),
    )
    assert.match(err, /If the service has moved: mayfly move <name> --to /)
  }
  assert.equal(other.logged.filter((line) => line.includes('/api/catch')).length, 0)
  const env = { environment: { MAYFLY_URL: other.url } }
  assert.equal((await cli.json(['status', 'hooks', '--url', mine.url], env)).status, 'active')
})

test('a name moves to an address that knows it, and to no other', async (t) => {
  const [server, other] = await Promise.all([startServer(t), startServer(t)])
  const cli = await commandLine(t, server.url)
  await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  await cli.json(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  const refused = await cli.run(['move', 'hooks', '--to', other.url])
  assert.deepEqual(
    [refused.code, refused.err],
    [4, `${other.url} does not know hooks, so nothing was changed.\n`],
  )
  const away = await cli.run(['move', 'hooks', '--to', 'http://127.0.0.1:9'])
  assert.deepEqual([away.code, /does not answer/.test(away.err)], [5, true])
  assert.equal((await cli.json(['show', 'hooks'])).baseUrl, server.url)
  const moved = server.url.replace('127.0.0.1', 'localhost')
  for (const name of ['hooks', 'beat']) {
    assert.equal((await cli.json(['move', name, '--to', moved])).baseUrl, moved)
    assert.equal((await cli.json(['show', name])).baseUrl, moved)
  }
  const env = { environment: { MAYFLY_URL: '' } }
  assert.equal((await cli.json(['status', 'hooks'], env)).status, 'active')
})

test('list shows what the service said last, and --check asks now', async (t) => {
  const { cli, server } = await aUser(t, {}, await ownPort())
  for (const product of ['catch', 'pulse']) {
    await cli.json(['buy', product, '--plan', 'long', '--name', product], WITH_WALLET)
  }
  const send = ['whisper', 'send', '--receipt', '--reads', '1', '--name', 'note']
  const { code } = await cli.json(send, { ...WITH_WALLET, input: 'x' })
  assert.deepEqual(await statesOf(cli), ['catch saved', 'note saved', 'pulse saved'])
  assert.deepEqual(await statesOf(cli, '--check'), ['catch active', 'note active', 'pulse waiting'])

  await server.mayfly.readWhisper(String(code))
  const { ownerToken, publicId } = await cli.json(['show', 'catch', '--reveal'])
  const owner = { publicId: String(publicId), ownerToken: String(ownerToken) }
  await server.mayfly.catch(owner).destroy()
  await cli.run(['status', 'catch'])
  assert.deepEqual(await statesOf(cli), ['catch gone', 'note active', 'pulse waiting'])
  assert.deepEqual(await statesOf(cli, '--check'), [
    'catch gone',
    'note exhausted',
    'pulse waiting',
  ])
  assert.deepEqual(await statesOf(cli), ['catch gone', 'note exhausted', 'pulse waiting'])

  await server.stop()
  assert.deepEqual(await statesOf(cli), ['catch gone', 'note exhausted', 'pulse waiting'])
  const { code: exit, out } = await cli.run(['list', '--check', '--json'])
  assert.equal(exit, 5)
  const [first] = JSON.parse(out) as { state: string; problem: string }[]
  assert.equal(first?.state, 'gone')
  assert.match(String(first?.problem), /does not answer/)
})
