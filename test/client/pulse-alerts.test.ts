/** Alerts through the SDK and the command line. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { aMonitor } from '../support/pulse.ts'
import { aReceiver } from '../support/receiver.ts'
import { startServer } from '../support/server.ts'

test('an owner sets, tests, reads and forgets the destinations of a monitor with the SDK', async (t) => {
  const receiver = await aReceiver(t)
  const server = await startServer(t, { MAYFLY_ALLOWED_HOSTS: receiver.host })
  const monitor = server.mayfly.pulse(await aMonitor(server))
  const { publicId: inbox, ingestToken } = await anInbox(server)
  receiver.answer = (_received, response) => void response.writeHead(500).end()
  const destinations = [{ url: receiver.url }, { inbox, ingestToken }]
  const set = await monitor.setAlerts({ destinations })
  assert.deepEqual(
    set.destinations.map(({ state, test: outcome }) => [state, outcome]),
    [
      ['untested', '5xx'],
      ['active', '2xx'],
    ],
  )
  assert.ok(set.destinations.every(({ secret }) => secret?.startsWith('whsec_')))
  receiver.answer = null
  const tested = await monitor.testAlerts()
  assert.deepEqual(
    tested.destinations.map(({ state, test: outcome, secret }) => [state, outcome, secret]),
    [
      ['active', '2xx', null],
      ['active', null, null],
    ],
  )
  const { destinations: shown, deliveries } = await monitor.alerts()
  assert.deepEqual([shown.map(({ format }) => format), deliveries], [['standard', 'inbox'], []])
  await monitor.deleteAlerts()
  assert.deepEqual((await monitor.alerts()).destinations, [])
  const refused = monitor.setAlerts({ destinations: [{ url: 'http://10.0.0.1/' }] })
  await assert.rejects(refused, { phrase: 'invalid destinations' })
})
