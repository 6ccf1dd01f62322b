/** What destinations are told of a monitor: when, how often, in which order, and what a bad receiver costs others. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { PulseCapability } from '../../src/client/index.ts'
import { type AlertsSet, alerts, aWorld, put } from '../support/alerts.ts'
import { anInbox } from '../support/catch.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { aReceiver, type Receiver, verified } from '../support/receiver.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { suspendAt } from '../support/takedown.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A monitor that tells the receiver, has an interval and a grace of a minute, and was pinged. */
async function aTold(
  t: After,
  {
    destinations = [{}],
    environment = {},
  }: Partial<{ destinations: object[]; environment: Record<string, string> }> = {},
) {
  const world = await aWorld(t, environment)
  const { server, monitor, receiver } = world
  const set = await put(
    server,
    monitor,
    destinations.map((one) => ({ url: receiver.url, ...one })),
  )
  const { destinations: shown } = set.body as AlertsSet
  assert.ok(
    shown.every(({ state }) => state === 'active'),
    JSON.stringify(shown),
  )
  await begin(server, monitor, 'backup')
  receiver.received.length = 0
  return { ...world, secret: shown[0]?.secret ?? '' }
}

async function begin(server: TestServer, monitor: PulseCapability, name: string): Promise<void> {
  await server.mayfly.pulse(monitor).update({ name, expectedIntervalSeconds: 60, graceSeconds: 60 })
  await ping(server, monitor)
}

type Told = { type: string; outcome: string | null; attempts: number; nextTryAt: string | null }

const deliveries = async (server: TestServer, monitor: PulseCapability): Promise<Told[]> =>
  (await alerts(server, monitor)).body.deliveries

const settled = (server: TestServer, monitor: PulseCapability, count: number): Promise<Told[]> =>
  until(`${count} deliveries that wait for nothing`, async () => {
    const all = await deliveries(server, monitor)
    return all.length === count && all.every(({ nextTryAt }) => nextTryAt === null) ? all : null
  })

const tried = (server: TestServer, monitor: PulseCapability, attempts: number): Promise<Told> =>
  until(`${attempts} attempts`, async () => {
    const [newest] = await deliveries(server, monitor)
    return newest?.attempts === attempts ? newest : null
  })

const types = ({ received }: Receiver): unknown[] =>
  received.map(({ headers }) => headers['mayfly-alert'])

test('a monitor that falls silent and comes back tells both, signed, in order', async (t) => {
  const { server, monitor, receiver, secret } = await aTold(t)
  await live(server, 3 * MINUTE)
  const [late] = await receiver.until('pulse.late')
  assert.ok(late)
  assert.deepEqual(verified(late, secret), late.body)
  const { data } = late.body
  assert.deepEqual(Object.keys(late.body), ['type', 'timestamp', 'data'])
  assert.deepEqual(
    { ...data, since: typeof data?.since, lastPingAt: typeof data?.lastPingAt },
    {
      name: 'backup',
      state: 'late',
      since: 'string',
      lastPingAt: 'string',
    },
  )
  assert.equal(Date.parse(String(data?.since)) - Date.parse(String(data?.lastPingAt)), 2 * MINUTE)
  await ping(server, monitor)
  await live(server, MINUTE)
  const [back] = await receiver.until('pulse.recovered')
  assert.equal(back?.body.data?.state, 'operational')
  assert.deepEqual(types(receiver), ['pulse.late', 'pulse.recovered'])
  const told = await settled(server, monitor, 2)
  assert.deepEqual(
    told.map(({ type, outcome, attempts }) => [type, outcome, attempts]),
    [
      ['pulse.recovered', '2xx', 1],
      ['pulse.late', '2xx', 1],
    ],
  )
})

test('no message has an id or a token of the monitor in it', async (t) => {
  const { server, monitor, receiver } = await aTold(t)
  await live(server, 3 * MINUTE)
  const [late] = await receiver.until('pulse.late')
  const all = JSON.stringify(late)
  const { publicStatusId } = await server.mayfly.pulse(monitor).status()
  for (const one of [monitor.publicId, monitor.ownerToken, monitor.pingToken, publicStatusId]) {
    assert.ok(one === null || !all.includes(one))
  }
})

test('a failed run is told at once, with its code, and once until a good ping', async (t) => {
  const { server, monitor, receiver } = await aTold(t)
  const reported = async (signal: string): Promise<void> => {
    const { status } = await fetch(`${server.url}/p/${monitor.publicId}/${signal}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${monitor.pingToken}` },
    })
    assert.equal(status, 204)
  }
  await reported('7')
  const [failed] = await receiver.until('pulse.failed')
  assert.equal(failed?.body.data?.exitCode, 7)
  await reported('8')
  await reported('0')
  await live(server, MINUTE)
  await receiver.until('pulse.recovered')
  assert.deepEqual(types(receiver), ['pulse.failed', 'pulse.recovered'])
})

test('an inbox is told like a URL', async (t) => {
  const { server, monitor } = await aWorld(t)
  const inbox = await anInbox(server)
  await put(server, monitor, [{ inbox: inbox.publicId, ingestToken: inbox.ingestToken }])
  await begin(server, monitor, 'backup')
  await live(server, 3 * MINUTE)
  const body = await until('the alert in the inbox', async () => {
    const events = await Array.fromAsync(server.mayfly.catch(inbox).events())
    return events.find(({ body }) => body.includes('pulse.late'))?.body
  })
  assert.equal(JSON.parse(body).data.name, 'backup')
})

test('a monitor that runs out of pings says so before and at the end', async (t) => {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify({ pulse: { spark: { heartbeatLimit: 10 } } }))
  const { server, monitor, receiver } = await aTold(t, { environment: { MAYFLY_CATALOG: file } })
  for (let i = 0; i < 8; i++) await ping(server, monitor)
  await receiver.until('pulse.exhausting')
  await ping(server, monitor)
  await live(server, MINUTE)
  await receiver.until('pulse.exhausted')
  assert.deepEqual(types(receiver), ['pulse.exhausting', 'pulse.exhausted'])
})

test('a monitor says that it ends soon, once a tenth of its life is left', async (t) => {
  const { server, monitor, receiver } = await aTold(t)
  await server.mayfly.pulse(monitor).update({ expectedIntervalSeconds: 604_800 })
  await live(server, 22 * HOUR)
  const [expiring] = await receiver.until('pulse.expiring')
  assert.equal(expiring?.body.data?.state, 'operational')
  assert.deepEqual(types(receiver), ['pulse.expiring'])
})

describe('a receiver that fails', () => {
  test('a message is tried again by the schedule, with the same id, until it is answered', async (t) => {
    const { server, monitor, receiver, secret } = await aTold(t)
    receiver.answer = (_received, response) => void response.writeHead(500).end()
    await live(server, 3 * MINUTE)
    for (const [attempts, pause] of [
      [1, 5_000],
      [2, 5 * MINUTE],
      [3, 30 * MINUTE],
    ] as const) {
      const { outcome, nextTryAt } = await tried(server, monitor, attempts)
      assert.equal(outcome, '5xx')
      const wait = Date.parse(nextTryAt ?? '') - server.clock.now()
      assert.ok(wait <= pause && wait > pause - 30_000, `${attempts}: ${wait}`)
      await live(server, pause)
    }
    await tried(server, monitor, 4)
    receiver.answer = null
    await live(server, 2 * HOUR)
    const [done] = await settled(server, monitor, 1)
    assert.deepEqual([done?.outcome, done?.attempts], ['2xx', 5])
    const all = await receiver.until('pulse.late', 5)
    assert.equal(new Set(all.map(({ headers }) => headers['webhook-id'])).size, 1)
    assert.equal(new Set(all.map(({ text }) => text)).size, 1)
    for (const one of all) assert.ok(one.headers['webhook-signature'])
    assert.ok(secret)
  })

  test('a message that nobody takes is given up after three days', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    receiver.answer = (_received, response) => void response.writeHead(404).end()
    await live(server, 3 * MINUTE)
    await tried(server, monitor, 1)
    // What is tested is the schedule's end; its steps are above and in test/alerts. An attempt that is under way
    // would write its own count afterwards.
    await until('the end', async () => {
      await query(server, 'update alert set attempts = 9')
      await query(
        server,
        'update alert_destination set due_at = $1 where due_at <> $1 + 30000',
        server.clock.now(),
      )
      return server.logged.some((line) => line.includes('alerts.given_up'))
    })
    const [given] = await settled(server, monitor, 1)
    assert.equal(given?.outcome, '4xx')
  })

  test('what was queued before a suspension is still sent, and nothing else while it lasts', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    receiver.answer = (_received, response) => void response.writeHead(500).end()
    await live(server, 3 * MINUTE)
    await tried(server, monitor, 1)
    await suspendAt(server, monitor.publicId)
    receiver.answer = null
    await live(server, 2 * HOUR)
    await receiver.until('pulse.late', 2)
    await live(server, 24 * HOUR)
    await until('nothing waits', async () => {
      const waiting = await query(server, 'select position from alert where done_at is null')
      return waiting.length === 0
    })
    assert.deepEqual(types(receiver), ['pulse.late', 'pulse.late'])
  })

  test('410 ends a destination, which is told no more until it is set again', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    receiver.answer = (_received, response) => void response.writeHead(410).end()
    await live(server, 3 * MINUTE)
    await until('the end', () => server.logged.some((line) => line.includes('alerts.disabled')))
    const shown = (await alerts(server, monitor)).body as AlertsSet
    assert.equal(shown.destinations[0]?.state, 'gone')
    const waiting = await query(server, 'select * from alert where done_at is null')
    assert.deepEqual(waiting, [])
    receiver.answer = null
    await ping(server, monitor)
    assert.deepEqual(
      (await deliveries(server, monitor)).map(({ type }) => type),
      ['pulse.late'],
    )
    const again = (await put(server, monitor, [{ url: receiver.url }])).body as AlertsSet
    assert.equal(again.destinations[0]?.state, 'active')
  })

  test('the patience that a receiver asks for with 429 or 503 is granted, for a day at most', async (t) => {
    for (const [status, asked, granted] of [
      [429, '120', 2 * MINUTE],
      [503, '120', 2 * MINUTE],
      [429, '1', 5_000],
      [429, '9999999', 24 * HOUR],
    ] as const) {
      const { server, monitor, receiver } = await aTold(t)
      receiver.answer = (_received, response) =>
        void response.writeHead(status, { 'retry-after': asked }).end()
      await live(server, 3 * MINUTE)
      const { nextTryAt } = await tried(server, monitor, 1)
      const wait = Date.parse(nextTryAt ?? '') - server.clock.now()
      assert.ok(wait <= granted && wait > granted - 5_000 - 30_000, `${asked}: ${wait}`)
    }
  })

  test('a redirect is not followed', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    const other = await aReceiver(t)
    receiver.answer = (_received, response) =>
      void response.writeHead(307, { location: other.url }).end()
    await live(server, 3 * MINUTE)
    assert.equal((await tried(server, monitor, 1)).outcome, 'failed')
    assert.deepEqual(other.received, [])
  })

  test('an answer of a megabyte is not read, and counts by its status', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    receiver.answer = (_received, response) => {
      response.on('error', () => {})
      response.writeHead(200).end(Buffer.alloc(1024 * 1024))
    }
    await live(server, 3 * MINUTE)
    const [done] = await settled(server, monitor, 1)
    assert.equal(done?.outcome, '2xx')
  })

  test('a receiver that hangs holds up no other monitor', async (t) => {
    const receivers = await Promise.all([aReceiver(t), aReceiver(t)])
    const [hanging, quick] = receivers
    const allowed = receivers.map(({ host }) => host).join(',')
    const server = await startServer(t, { MAYFLY_ALLOWED_HOSTS: allowed })
    const monitors = await Promise.all(Array.from({ length: 30 }, () => aMonitor(server)))
    const urls = monitors.map((_, i) => (i < 29 ? hanging.url : quick.url))
    await Promise.all(monitors.map((one, i) => put(server, one, [{ url: `${urls[i]}/${i}` }])))
    await Promise.all(monitors.map((one, i) => begin(server, one, `job ${i}`)))
    const held: ServerResponse[] = []
    hanging.answer = (_received, response) => void held.push(response)
    await live(server, 3 * MINUTE)
    await quick.until('pulse.late')
    await hanging.until('pulse.late', 8)
    // No ninth call to one host while eight hang.
    assert.equal(held.length, 8)
    hanging.answer = (_received, response) => void response.writeHead(204).end()
    for (const response of held) response.writeHead(204).end()
    const all = await hanging.until('pulse.late', 29)
    assert.equal(new Set(all.map(({ path }) => path)).size, 29)
  })
})

test('a monitor with three destinations at a host takes one of the places there, like any other', async (t) => {
  const receivers = await Promise.all([aReceiver(t), aReceiver(t)])
  const [hanging, quick] = receivers
  const allowed = receivers.map(({ host }) => host).join(',')
  const server = await startServer(t, { MAYFLY_ALLOWED_HOSTS: allowed })
  const [greedy, modest] = [await aMonitor(server), await aMonitor(server)]
  await put(
    server,
    greedy,
    [1, 2, 3].map((i) => ({ url: `${hanging.url}/${i}` })),
  )
  await put(server, modest, [{ url: quick.url }])
  await begin(server, greedy, 'greedy')
  await begin(server, modest, 'modest')
  const held: ServerResponse[] = []
  hanging.answer = (_received, response) => void held.push(response)
  await live(server, 3 * MINUTE)
  await quick.until('pulse.late')
  await hanging.until('pulse.late')
  assert.equal(held.length, 1)
  hanging.answer = null
  for (const response of held) response.writeHead(204).end()
  await hanging.until('pulse.late', 3)
})

describe('how often a destination is told', () => {
  test('a monitor that flaps tells its first change at once, and then the last state of each minute', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    await server.mayfly.pulse(monitor).update({ expectedIntervalSeconds: 20 })
    await live(server, 2 * MINUTE)
    await receiver.until('pulse.late')
    for (let i = 0; i < 3; i++) {
      await ping(server, monitor)
      await live(server, 1_000)
      await query(
        server,
        `update pulse_monitor set last_ping_at = last_ping_at - 600000, check_at = 1`,
      )
      await until('another lateness', async () => {
        const [row] = await query(
          server,
          `select count(*) as n from alert where type = 'pulse.late'`,
        )
        return Number(row?.n) === i + 2
      })
    }
    assert.equal(receiver.received.length, 1)
    await live(server, MINUTE)
    await until('the last state', () => receiver.received.length === 2)
    assert.deepEqual(types(receiver), ['pulse.late', 'pulse.late'])
    const told = await settled(server, monitor, 2)
    assert.equal(told.length, 2)
  })

  test('a destination is told 60 times a day at most', async (t) => {
    const { server, monitor, receiver } = await aTold(t)
    const now = server.clock.now()
    await query(server, 'update alert_destination set day_started_at = $1, day_count = 59', now)
    await live(server, 3 * MINUTE)
    await receiver.until('pulse.late')
    await ping(server, monitor)
    const [newest] = await until('the next', async () => {
      const all = await deliveries(server, monitor)
      return all.length === 2 ? all : null
    })
    assert.ok(Date.parse(newest?.nextTryAt ?? '') - now >= 24 * HOUR - MINUTE)
  })
})

describe('what goes with a destination', () => {
  test('what waits for a destination is gone with it, and with the monitor', async (t) => {
    for (const end of ['DELETE', 'PUT', 'destroy'] as const) {
      const { server, monitor, receiver } = await aTold(t)
      receiver.answer = (_received, response) => void response.writeHead(500).end()
      await live(server, 3 * MINUTE)
      await tried(server, monitor, 1)
      if (end === 'PUT') await put(server, monitor, [])
      else if (end === 'DELETE') await alerts(server, monitor, { method: 'DELETE' })
      else await server.mayfly.pulse(monitor).destroy()
      assert.deepEqual(await query(server, 'select * from alert'), [], end)
    }
  })
})

test('a monitor that is told of an alert by an alert records nothing, so no circle heals itself', async (t) => {
  const { server, monitor } = await aTold(t)
  const before = await server.mayfly.pulse(monitor).status()
  const looped = await ping(server, monitor, { headers: { 'mayfly-alert': 'pulse.late' } })
  assert.equal(looped.status, 204)
  const after = await server.mayfly.pulse(monitor).status()
  assert.equal(after.acceptedHeartbeatCount, before.acceptedHeartbeatCount)
})
