import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WITH_WALLET } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { aReceiver } from '../support/receiver.ts'
import { aUser } from '../support/user.ts'

test('pulse alerts adds, shows, tests, removes and forgets who is told of a monitor', async (t) => {
  const { receiver, alerts } = await aMonitor(t)
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
  assert.deepEqual(await formats(alerts), ['ntfy active', 'inbox active', 'standard active'])

  const both = await alerts('--test', '--none')
  assert.deepEqual([both.code, both.out], [2, ''])
  assert.deepEqual([(await alerts('--opens-at')).code], [2], 'nothing is added')
  const four = ['1', '2', '3', '4'].map((path) => `${receiver.url}/${path}`)
  const most = await alerts('--none').then(() => alerts('--standard', ...four))
  assert.deepEqual([most.code, /at most 3/i.test(most.err)], [2, true], most.err)
  assert.equal((await alerts('--none')).code, 0)
  assert.match((await alerts()).out, /"destinations":\[\]/)
})

test('a destination that is added or removed leaves the others told, with their secrets', async (t) => {
  const { receiver, alerts } = await aMonitor(t)
  await alerts('--inbox', 'hooks')
  receiver.answer = (_received, response) => void response.writeHead(500).end()
  const added = await alerts('--slack', receiver.url)
  assert.equal(added.code, 1)
  assert.deepEqual(
    JSON.parse(added.out).destinations.map(
      ({ secret }: { secret: string | null }) => secret === null,
    ),
    [true, false],
  )
  assert.deepEqual(await formats(alerts), ['inbox active', 'slack untested'])

  const missing = await alerts('--remove', 'ntfy.sh')
  assert.deepEqual([missing.code, /is no destination\. These are: /.test(missing.err)], [2, true])
  const many = await alerts('--ntfy', `${receiver.url}/a`, `${receiver.url}/b`)
  assert.deepEqual([many.code, /at most 3/i.test(many.err)], [2, true], many.err)
  assert.equal((await alerts('--remove', receiver.host)).code, 0)
  assert.deepEqual(await formats(alerts), ['inbox active'])
  const last = await alerts('--remove', 'hooks')
  assert.deepEqual(
    [last.code, /That removes the last destination of beat/.test(last.err)],
    [2, true],
  )
  assert.deepEqual(await formats(alerts), ['inbox active'])
})

test('alerts of which no destination has answered a test end with a failure that says so', async (t) => {
  const receiver = await aReceiver(t)
  const { cli } = await aUser(t, { beat: 'pulse' }, { MAYFLY_ALLOWED_HOSTS: receiver.host })
  receiver.answer = (_received, response) => void response.writeHead(500).end()
  const added = await cli.run(['alerts', 'beat', '--slack', receiver.url])
  assert.deepEqual([added.code, added.err], [1, 'No destination of beat receives alerts yet.\n'])
})

/** A user with a monitor and an inbox, and who else may be told. */
async function aMonitor(t: After) {
  const receiver = await aReceiver(t)
  const environment = { MAYFLY_ALLOWED_HOSTS: receiver.host }
  const { cli } = await aUser(t, { beat: 'pulse', hooks: 'catch' }, environment)
  return { receiver, alerts: (...options: string[]) => cli.run(['alerts', 'beat', ...options]) }
}

/** The format and the state of each destination. */
async function formats(alerts: () => Promise<{ out: string }>): Promise<string[]> {
  const { destinations } = JSON.parse((await alerts()).out)
  return destinations.map(
    ({ format, state }: { format: string; state: string }) => `${format} ${state}`,
  )
}

test('whisper alerts sets, shows and forgets who is told of the reads of a whisper with a receipt', async (t) => {
  const receiver = await aReceiver(t)
  const { cli } = await aUser(t, {}, { MAYFLY_ALLOWED_HOSTS: receiver.host })
  const send = (...options: string[]) =>
    cli.run(['whisper', 'send', ...options], { ...WITH_WALLET, input: 'secret' })
  await send('--receipt', '--name', 'note')
  await send('--name', 'plain')
  const alerts = (name: string, ...options: string[]) => cli.run(['alerts', name, ...options])
  const set = await alerts('note', '--ntfy', `http://${receiver.host}/topic`)
  assert.deepEqual([set.code, JSON.parse(set.out).destinations[0].state], [0, 'active'])
  assert.match(String(receiver.received[0]?.body.message), /when whisper_\w+ is read/)
  assert.match((await alerts('note')).out, /"format":"ntfy"/)
  assert.equal((await alerts('note', '--none')).code, 0)
  assert.match((await alerts('note')).out, /"destinations":\[\]/)
  const refused = await alerts('plain', '--ntfy', `http://${receiver.host}/topic`)
  assert.deepEqual([refused.code, /--receipt/.test(refused.err)], [2, true])
})
