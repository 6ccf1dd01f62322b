import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { answerOf } from '../support/answer.ts'
import { aMonitor, live, type Owner, ping } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const history = async (
  { url }: TestServer,
  { publicId, ownerToken }: Owner,
  search = '',
): Promise<{ status: number; text: string }> =>
  answerOf(
    await fetch(`${url}/api/pulse/${publicId}/history${search}`, {
      headers: { authorization: `Bearer ${ownerToken}` },
    }),
  )

suite('the history of a monitor', () => {
  const theServer = shareServer()

  test('the SDK reads a history page by page or entry by entry', async () => {
    const server = await theServer()
    const monitor = server.mayfly.pulse(await aMonitor(server))
    for (let i = 0; i < 5; i++) await monitor.exit(i % 2)
    const first = await monitor.history({ limit: 2 })
    assert.equal(first.entries.length, 2)
    assert.ok(first.nextCursor)
    const second = await monitor.history({ limit: 2, cursor: first.nextCursor })
    const all: unknown[] = []
    for await (const entry of monitor.historyEntries({ limit: 2 })) all.push(entry)
    assert.deepEqual(all.slice(0, 4), [...first.entries, ...second.entries])
    const whole = await monitor.history()
    assert.deepEqual([whole.entries, whole.nextCursor], [all, null])
    assert.equal(whole.entries.filter(({ type }) => type === 'failed').length, 2)
  })

  test('a history is told to its owner token alone, and not to who has the shared status', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const other = await aMonitor(server)
    const owner = server.mayfly.pulse(monitor)
    await owner.ping()
    const { publicStatusId } = await owner.update({ publicStatusEnabled: true })
    const tokens = [other.ownerToken, monitor.pingToken, other.pingToken]
    for (const ownerToken of tokens) {
      const { status } = await history(server, { ...monitor, ownerToken })
      assert.ok(status === 401 || status === 404, `${status}`)
    }
    assert.equal((await history(server, { ...other, publicId: monitor.publicId })).status, 404)
    for (const rest of [`${publicStatusId}/history`, `public/${publicStatusId}/history`]) {
      assert.equal((await fetch(`${server.url}/api/pulse/${rest}`)).ok, false)
    }
    const shared = await server.mayfly.pulsePublicStatus(publicStatusId)
    assert.deepEqual(Object.keys(shared), ['name', 'description', 'state', 'lastPingAt'])
  })

  test('a cursor or a limit that is none gets 400 that says what it must be', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    for (const search of ['cursor=', 'cursor=1', 'cursor=MS4yLjM0MA', `cursor=${'A'.repeat(90)}`]) {
      const field = search.split('=')[0]
      const url = `${server.url}/api/pulse/${monitor.publicId}/history?${search}`
      const answer = await fetch(url, {
        headers: { authorization: `Bearer ${monitor.ownerToken}` },
      })
      const body = (await answer.json()) as Record<string, unknown>
      const isGood = search === 'cursor=MS4yLjM0MA'
      assert.deepEqual(
        [answer.status, body.error, body.field],
        isGood ? [200, undefined, undefined] : [400, 'invalid query', field],
      )
    }
    for (const search of [
      'limit=0',
      'limit=201',
      'limit=x',
      'limit=1.5',
      'page=2',
      'cursor=MS4yLng',
    ]) {
      assert.equal((await history(server, monitor, `?${search}`)).status, 400, search)
    }
  })

  test('nothing of a history is left of a monitor that is destroyed', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    await ping(server, monitor)
    await server.mayfly.pulse(monitor).destroy()
    assert.equal((await history(server, monitor)).status, 404)
    const id = monitor.publicId
    for (const table of ['pulse_late_spell', 'pulse_ping', 'pulse_monitor']) {
      const rows = await query(server, `select 1 as one from ${table} where public_id = $1`, id)
      assert.deepEqual(rows, [], table)
    }
  })
})

test('two hours in which the service was killed count neither as late nor as on time', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const monitor = () => server.mayfly.pulse(capability)
  await ping(server, capability)
  await live(server, 3 * MINUTE)
  assert.equal((await monitor().status()).state, 'late')
  await server.stop()
  server.clock.advance(2 * HOUR)
  await server.restart()
  await live(server, MINUTE)
  const { uptime, entries } = await monitor().history()
  assert.deepEqual(
    entries.map(({ type, endedAt, cause }) => [type, endedAt === null, cause]),
    [
      ['blind', false, null],
      ['late', true, 'silence'],
      ['ping', true, null],
    ],
  )
  // On time for two of the four minutes that the service has seen.
  assert.ok(Math.abs((uptime.last24Hours ?? 0) - 0.5) < 0.03, `${uptime.last24Hours}`)
})

test('an expired monitor tells its history for a day', async (t) => {
  const server = await startServer(t)
  const monitor = await aMonitor(server)
  await ping(server, monitor)
  await live(server, 24 * HOUR + MINUTE)
  const { uptime, entries } = await server.mayfly.pulse(monitor).history()
  assert.equal(uptime.until, monitor.expiresAt)
  assert.deepEqual(
    entries.map(({ type, endedAt }) => [type, endedAt]),
    [
      ['late', monitor.expiresAt],
      ['ping', null],
    ],
  )
  await live(server, 24 * HOUR)
  assert.equal((await history(server, monitor)).status, 404)
})

test('reading the history takes from the limit of its owner', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const monitor = await aMonitor(server)
  const answers: number[] = []
  for (let i = 0; i < 121; i++) answers.push((await history(server, monitor)).status)
  assert.deepEqual([answers.filter((status) => status === 200).length, answers.at(-1)], [120, 429])
})
