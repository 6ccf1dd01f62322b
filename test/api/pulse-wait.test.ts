/** The status of a monitor that waits for another state. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { PulseCapability, PulseStatus } from '../../src/client/index.ts'
import { aMonitor, live, owner, ping } from '../support/pulse.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { mayflyError } from '../support/whisper.ts'

const MINUTE = 60_000

test('a wait answers at once if the state is another than the one that is known', async (t) => {
  const server = await aServer(t)
  const capability = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  const { stateChangedAt } = await monitor.status()
  await ping(server, capability)
  const { state } = await monitor.awaitState({ since: stateChangedAt })
  assert.equal(state, 'operational')
})

test('a wait ends with the ping or the deadline that changes the state, and with no other ping', async (t) => {
  const server = await aServer(t)
  const capability = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  const { answer: first } = await awaited(server, capability)
  await ping(server, capability)
  assert.equal((await first).state, 'operational')

  const { answer: second, isAnswered } = await awaited(server, capability)
  await ping(server, capability)
  assert.equal((await monitor.status()).acceptedHeartbeatCount, 2)
  assert.equal(isAnswered(), false)
  await live(server, 3 * MINUTE)
  // A hint, so that the waiting request looks at the clock that was moved.
  await monitor.update({ name: 'job' })
  assert.equal((await second).state, 'late')
})

test('a wait whose time is over answers with the state as it is, and one for a destroyed monitor with 404', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const server = await aServer(t)
  const capability = await aMonitor(server)
  // Not by the SDK, whose own limit on a request would pass with the mocked time, too.
  let isAnswered = false
  const answer = fetch(`${server.url}/api/pulse/${capability.publicId}?wait=30`, {
    headers: { authorization: `Bearer ${capability.ownerToken}` },
  }).finally(() => {
    isAnswered = true
  })
  await until('it waits', async () => (await waiting(server)) === 1)
  while (!isAnswered) {
    t.mock.timers.tick(5_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { state } = (await (await answer).json()) as PulseStatus
  assert.equal(state, 'waiting')
  t.mock.timers.reset()
  const { answer: destroyed } = await awaited(server, capability)
  const refused = assert.rejects(destroyed, mayflyError('not found', 404))
  await server.mayfly.pulse(capability).destroy()
  await refused
})

test("a wait is the owner's, counts among the streams, and is refused with a query that is out of bounds", async (t) => {
  const server = await aServer(t)
  const capability = await aMonitor(server)
  const ask = (query: string, token = capability.ownerToken) =>
    fetch(`${server.url}/api/pulse/${capability.publicId}?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  for (const query of [
    'wait=31',
    'wait=-1',
    'wait=x',
    'wait=1.5',
    'since=yesterday',
    'wait=1&since=2026',
  ]) {
    const response = await ask(query)
    const { error } = (await response.json()) as { error: string }
    assert.deepEqual([response.status, error], [400, 'invalid query'], query)
  }
  assert.equal((await ask('wait=30', capability.pingToken)).status, 401)
  assert.equal((await ask('wait=0')).status, 200)
  assert.equal((await ask('other=1')).status, 200)
  const open = Array.from({ length: 64 }, () => new AbortController())
  const waits = open.map(({ signal }) =>
    fetch(`${server.url}/api/pulse/${capability.publicId}?wait=30`, {
      headers: { authorization: `Bearer ${capability.ownerToken}` },
      signal,
    }).catch(() => null),
  )
  await until('all wait', async () => (await waiting(server)) === 64)
  assert.equal((await ask('wait=30')).status, 429)
  assert.equal((await owner(server, capability, { method: 'GET' })).status, 200)
  for (const controller of open) controller.abort()
  await Promise.all(waits)
})

const aServer = (t: TestContext) =>
  startServer(t, { MAYFLY_RATE_LIMITS: 'off', MAYFLY_METRICS_PORT: '0' })

/** How many requests wait. */
async function waiting(server: TestServer): Promise<number> {
  const { series } = await scrape(server)
  return series.get('mayfly_open_streams{route="/api/pulse/:publicId"}') ?? 0
}

/** A request that waits. */
async function awaited(server: TestServer, capability: PulseCapability) {
  let isDone = false
  const answer: Promise<PulseStatus> = server.mayfly.pulse(capability).awaitState()
  const done = (): void => {
    isDone = true
  }
  answer.then(done, done)
  await until('it waits', async () => (await waiting(server)) === 1)
  return { answer, isAnswered: () => isDone }
}
