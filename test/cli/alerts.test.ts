import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { aReceiver } from '../support/receiver.ts'
import { startServer } from '../support/server.ts'

test('pulse alerts sets, shows, tests and forgets who is told of a monitor', async (t) => {
  const receiver = await aReceiver(t)
  const { url } = await startServer(t, { MAYFLY_ALERT_ALLOWED_HOSTS: receiver.host })
  const cli = await commandLine(t, url)
  await cli.json(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const alerts = (...options: string[]) => cli.run(['pulse', 'alerts', 'beat', ...options])
  assert.match((await alerts()).out, /"destinations":\[\]/)

  const topic = `http://${receiver.host}/topic`
  const set = await alerts('--ntfy', topic, '--inbox', 'hooks')
  assert.equal(set.code, 0)
  const { destinations } = JSON.parse(set.out)
  assert.deepEqual(
    destinations.map(({ format, state }: { format: string; state: string }) => [format, state]),
    [
      ['ntfy', 'active'],
      ['inbox', 'active'],
    ],
  )
  assert.equal(receiver.received[0]?.body.topic, 'topic')

  receiver.answer = (_received, response) => void response.writeHead(500).end()
  const untested = await alerts('--standard', receiver.url)
  assert.equal(untested.code, 1)
  assert.match(untested.out, /"test":"5xx"/)
  receiver.answer = null
  assert.equal((await alerts('--test')).code, 0)

  const both = await alerts('--test', '--none')
  assert.deepEqual([both.code, both.out], [2, ''])
  assert.equal((await alerts('--none')).code, 0)
  assert.match((await alerts()).out, /"destinations":\[\]/)
})

test('whisper alerts sets, shows and forgets who is told of the reads of a whisper with a receipt', async (t) => {
  const receiver = await aReceiver(t)
  const { url } = await startServer(t, { MAYFLY_ALERT_ALLOWED_HOSTS: receiver.host })
  const cli = await commandLine(t, url)
  const send = (...options: string[]) =>
    cli.run(['whisper', 'send', ...options], { ...WITH_WALLET, input: 'secret' })
  await send('--receipt', '--name', 'note')
  await send('--name', 'plain')
  const alerts = (name: string, ...options: string[]) =>
    cli.run(['whisper', 'alerts', name, ...options])
  const set = await alerts('note', '--ntfy', `http://${receiver.host}/topic`)
  assert.deepEqual([set.code, JSON.parse(set.out).destinations[0].state], [0, 'active'])
  assert.match(String(receiver.received[0]?.body.message), /when whisper_\w+ is read/)
  assert.match((await alerts('note')).out, /"format":"ntfy"/)
  assert.equal((await alerts('note', '--none')).code, 0)
  assert.match((await alerts('note')).out, /"destinations":\[\]/)
  const refused = await alerts('plain', '--ntfy', `http://${receiver.host}/topic`)
  assert.deepEqual([refused.code, /--receipt/.test(refused.err)], [2, true])
})
