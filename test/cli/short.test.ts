import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { startServer } from '../support/server.ts'
import { suspendAt } from '../support/takedown.ts'
import { until } from '../support/until.ts'
import { aUser } from '../support/user.ts'

test('open says the page of what is saved, without a token in it, and ping is pulse ping', async (t) => {
  const { cli, url } = await aUser(t, { hooks: 'catch', beat: 'pulse' })
  await cli.json(['whisper', 'send', '--name', 'note'], { ...WITH_WALLET, input: 'x' })
  const page = async (name: string) => (await cli.json(['open', name])).url
  assert.deepEqual(await page('hooks'), `${url}/catch`)
  assert.deepEqual(await page('note'), `${url}/read`)
  assert.deepEqual(await page('beat'), `${url}/pulse`)
  const { statusUrl } = await cli.json(['pulse', 'set', 'beat', '--public'])
  assert.deepEqual(await page('beat'), statusUrl)
  assert.deepEqual(await cli.json(['ping', 'beat']), { name: 'beat', pinged: true })
  assert.equal((await cli.json(['status', 'beat'])).acceptedHeartbeatCount, 1)
})

test('an id in place of a name is told apart from a name that is not saved', async (t) => {
  const { cli } = await aUser(t)
  const { publicId } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  for (const args of [
    ['catch', 'listen', publicId],
    ['forget', publicId],
    ['buy', 'catch', '--resume', publicId],
    ['whisper', 'send', '--when-late', publicId],
  ]) {
    const { code, err } = await cli.run(args.map(String))
    assert.equal(code, 2, String(args))
    assert.match(err, /^catch_\S+ is an id\. This takes the name that it is saved under/)
  }
})

test('the help of all shows gate where GATE is on, and its commands work elsewhere too', async (t) => {
  const cli = await commandLine(t, 'http://127.0.0.1:9')
  const isShown = async (environment: Record<string, string>) =>
    /^ {2}gate /m.test((await cli.run(['--help'], { environment })).out)
  assert.deepEqual([await isShown({}), await isShown({ MAYFLY_GATE: 'on' })], [false, true])
  assert.match((await cli.run(['gate', '--help'])).out, / project /)
})

test('a listener of an inbox that is suspended says so once, and not that the connection is lost', async (t) => {
  const { cli, server } = await aUser(t)
  const { publicId } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const listening = cli.start(['catch', 'listen', 'hooks'])
  await until('it listens', () => /Waiting for webhooks/.test(listening.err()))
  await suspendAt(server, String(publicId))
  await until('it says so', () => /suspended the inbox/.test(listening.err()))
  // It has been away and back again since.
  const lines = listening.err().match(/lost/g) ?? []
  assert.ok(lines.length <= 1, listening.err())
  listening.child.kill('SIGINT')
  assert.equal((await listening.ended).code, 130)
})

test('a ping that is refused says what may have happened, and who sees which', async (t) => {
  const { url } = await startServer(t)
  const owner = await commandLine(t, url)
  await owner.json(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  const { out: forPings } = await owner.run(['export', 'beat', '--ping-only'])
  const job = await commandLine(t, url)
  await job.json(['import', '-', '--name', 'beat'], { input: forPings })
  await owner.json(['pulse', 'rotate', 'beat'])
  const { code, err } = await job.run(['ping', 'beat'])
  assert.equal(code, 4)
  assert.match(err, /its owner has replaced the ping token\. The owner sees which: mayfly status/)
})
