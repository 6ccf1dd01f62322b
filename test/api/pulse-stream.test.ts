import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { createEventParser, readEvents } from '../../src/client/event-stream.ts'
import type { PulseCapability, PulseStatus } from '../../src/client/index.ts'
import { aMonitor, live, owner, ping } from '../support/pulse.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { mayflyError } from '../support/whisper.ts'

type Told = { event: string; state: string; count: number }

/** The events of a stream, one at each call. */
async function follow(
  t: { after(end: () => void): void },
  server: TestServer,
  { publicId, ownerToken }: { publicId: string; ownerToken: string },
) {
  const leaving = new AbortController()
  t.after(() => leaving.abort())
  const response = await fetch(`${server.url}/api/pulse/${publicId}/stream`, {
    headers: { authorization: `Bearer ${ownerToken}` },
    signal: leaving.signal,
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.ok(response.body)
  const events = readEvents(response.body, createEventParser())
  return async (): Promise<Told> => {
    const { value, done } = await events.next()
    if (done) return { event: 'closed', state: '', count: 0 }
    const data = JSON.parse(value.data) as {
      state?: string
      status?: string
      acceptedHeartbeatCount?: number
    }
    return {
      event: value.event,
      state: data.state ?? data.status ?? '',
      count: data.acceptedHeartbeatCount ?? 0,
    }
  }
}

// Two wait for a timer of a server of their own.
suite('the stream of a monitor', { concurrency: true }, () => {
  test('a stream begins with the status, tells of pings, and says by itself that a ping is late', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    const next = await follow(t, server, monitor)
    assert.deepEqual(await next(), { event: 'state', state: 'waiting', count: 0 })
    await client.ping()
    assert.deepEqual(await next(), { event: 'ping', state: 'operational', count: 1 })
    assert.deepEqual(await next(), { event: 'state', state: 'operational', count: 1 })
    await client.update({ expectedIntervalSeconds: 20, graceSeconds: 60 })
    assert.deepEqual(await next(), { event: 'state', state: 'operational', count: 1 })
    // Shortly before the deadline of 80 s, so that the stream's own timer meets it, and not too shortly
    // for a machine that is busy.
    await live(server, 74_000)
    await client.update({ name: 'nearly late' })
    assert.deepEqual(await next(), { event: 'state', state: 'operational', count: 1 })
    assert.deepEqual(await next(), { event: 'state', state: 'late', count: 1 })
    await client.ping()
    assert.deepEqual(await next(), { event: 'ping', state: 'operational', count: 2 })
    assert.deepEqual(await next(), { event: 'state', state: 'operational', count: 2 })
  })

  test('a stream tells of expiry, then ends', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    // Without a gap in the beats, which the status would tell of as soon as the next one notices it.
    await live(server, 24 * 60 * 60 * 1000 - 5_000)
    const next = await follow(t, server, monitor)
    assert.equal((await next()).state, 'waiting')
    assert.deepEqual(await next(), { event: 'state', state: 'expired', count: 0 })
    assert.deepEqual(await next(), { event: 'end', state: 'expired', count: 0 })
  })

  test('the SDK follows a monitor to its end', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    const stream = client.stream()
    const news = async (): Promise<[event: string, count: number] | null> => {
      const { value, done } = await stream.next()
      return done ? null : [value.event, value.status.acceptedHeartbeatCount]
    }
    assert.deepEqual(await news(), ['state', 0])
    await client.ping()
    assert.deepEqual(await news(), ['ping', 1])
    assert.deepEqual(await news(), ['state', 1])
    await client.setSchedule({ cron: '0 3 * * *', timeZone: 'UTC', graceSeconds: 900 })
    assert.deepEqual(await news(), ['state', 1])
    await client.deleteSchedule()
    assert.deepEqual(await news(), ['state', 1])
    await client.destroy()
    assert.deepEqual(await stream.next(), { value: 'destroyed', done: true })
  })
})

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

const aServer = (t: TestContext) => startServer(t, { MAYFLY_METRICS_PORT: '0' })

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
