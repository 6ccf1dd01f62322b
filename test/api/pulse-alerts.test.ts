/** What destinations are told of a monitor: when, how often, in which order, and what a bad receiver costs others. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PulseCapability } from '../../src/client/index.ts'
import { type AlertsSet, alerts, aWorld, put } from '../support/alerts.ts'
import type { After } from '../support/folder.ts'
import { live, ping } from '../support/pulse.ts'
import { type Receiver, verified } from '../support/receiver.ts'
import type { TestServer } from '../support/server.ts'
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
  const { publicStatusId } = await server.mayfly.pulse(monitor).status()
  const all = JSON.stringify(late)
  for (const one of [monitor.publicId, monitor.ownerToken, monitor.pingToken, publicStatusId]) {
    assert.ok(one === null || !all.includes(one), 'no id or token of the monitor')
  }
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
      const wait = Date.parse(nextTryAt ?? '') - server.now()
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
        server.now(),
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
    assert.ok(shown.destinations[0]?.state === 'gone')
    const waiting = await query(server, 'select * from alert where done_at is null')
    assert.deepEqual(waiting, [])
    receiver.answer = null
    await ping(server, monitor)
    assert.deepEqual(
      (await deliveries(server, monitor)).map(({ type }) => type),
      ['pulse.late'],
    )
    // As a page sets it again, which knows no address.
    const { id } = shown.destinations[0]
    const [again] = ((await put(server, monitor, [{ id }])).body as AlertsSet).destinations
    assert.deepEqual([again?.state, again?.test], ['active', '2xx'])
    assert.match(again?.secret ?? '', /^whsec_/)
  })

  test('the patience that a receiver asks for with 429 or 503 is granted, for a day at most', async (t) => {
    for (const [status, asked, granted] of [
      [503, '120', 2 * MINUTE],
      [429, '9999999', 24 * HOUR],
    ] as const) {
      const { server, monitor, receiver } = await aTold(t)
      receiver.answer = (_received, response) =>
        void response.writeHead(status, { 'retry-after': asked }).end()
      await live(server, 3 * MINUTE)
      const { nextTryAt } = await tried(server, monitor, 1)
      const wait = Date.parse(nextTryAt ?? '') - server.now()
      assert.ok(wait <= granted && wait > granted - 5_000 - 30_000, `${asked}: ${wait}`)
    }
  })
})

describe('what goes with a destination', () => {
  test('a destination is gone once it is left out, and with the monitor, and so is what waits for it', async (t) => {
    for (const end of ['DELETE', 'PUT', 'destroy'] as const) {
      const { server, monitor, receiver } = await aTold(t)
      receiver.answer = (_received, response) => void response.writeHead(500).end()
      await live(server, 3 * MINUTE)
      await tried(server, monitor, 1)
      if (end === 'PUT') await put(server, monitor, [])
      else if (end === 'DELETE') await alerts(server, monitor, { method: 'DELETE' })
      else await server.mayfly.pulse(monitor).destroy()
      const rows = await query(server, 'select destination_id from alert_destination')
      assert.deepEqual([rows, await query(server, 'select * from alert')], [[], []], end)
    }
  })
})
