import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createEventParser, readEvents } from '../../src/client/event-stream.ts'
import { aMonitor, live } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'

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
    server.clock.advance(24 * 60 * 60 * 1000 - 5_000)
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
