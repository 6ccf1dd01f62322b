import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { type Answer, answerOf, NOT_FOUND } from '../support/answer.ts'
import { aMonitor, DONE, type Job, ping } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const SECOND = 1_000
const INVALID_QUERY = { status: 400, text: '{"error":"invalid query"}' }
const LIMITED = { status: 429, text: '{"error":"rate limited"}' }

/** Sends a signal, such as `start` or `7?rid=…`. */
async function signal(
  { url }: TestServer,
  { publicId, pingToken, headers = {} }: Job & { headers?: Record<string, string> },
  rest: string,
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/p/${publicId}/${rest}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pingToken}`, ...headers },
      body: 'never stored',
    }),
  )
}

suite('the signals of a run', () => {
  const theServer = shareServer()

  test('a start moves nothing but the run, and costs a heartbeat', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const status = () => server.mayfly.pulse(monitor).status()
    assert.deepEqual(await signal(server, monitor, 'start'), DONE)
    const { state, lastPingAt, acceptedHeartbeatCount, openRuns, recentHeartbeats } = await status()
    assert.deepEqual(
      { state, lastPingAt, acceptedHeartbeatCount, recentHeartbeats },
      { state: 'waiting', lastPingAt: null, acceptedHeartbeatCount: 1, recentHeartbeats: [] },
    )
    assert.deepEqual(
      openRuns.map(({ rid }) => rid),
      [null],
    )
  })

  test('a failed run is late to everybody from then on, until a run succeeds', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    await client.update({ publicStatusEnabled: true })
    await ping(server, monitor)
    assert.deepEqual(await signal(server, monitor, '7'), DONE)
    const failed = await client.status()
    assert.equal(failed.state, 'late')
    assert.deepEqual(failed.failure, { since: failed.lastPingAt, exitCode: 7 })
    assert.equal(failed.stateChangedAt, failed.lastPingAt)
    const shared = await server.mayfly.pulsePublicStatus(failed.publicStatusId)
    assert.deepEqual(Object.keys(shared), ['name', 'description', 'state', 'lastPingAt'])
    assert.equal(shared.state, 'late')
    assert.deepEqual(await signal(server, monitor, 'fail'), DONE)
    const again = await client.status()
    assert.deepEqual(again.failure, failed.failure, 'time and code are those of one failure')
    assert.deepEqual([again.lastRun?.result, again.lastRun?.exitCode], ['failed', null])
    assert.deepEqual(await signal(server, monitor, '0'), DONE)
    const { state, failure, lastRun, acceptedHeartbeatCount } = await client.status()
    assert.deepEqual([state, failure, lastRun?.result], ['operational', null, 'ok'])
    assert.equal(acceptedHeartbeatCount, 4)
    await signal(server, monitor, 'fail')
    assert.deepEqual(await ping(server, monitor), DONE)
    const healed = await client.status()
    assert.deepEqual([healed.state, healed.failure], ['operational', null], 'by a plain ping too')
  })

  test('a run ends by its own rid, in either case, also where runs overlap and by a plain ping', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    const [long, short] = [randomUUID(), randomUUID()]
    await signal(server, monitor, `start?rid=${long}`)
    await signal(server, monitor, `start?rid=${short.toUpperCase()}`)
    await signal(server, monitor, `3?rid=${short}`)
    const { lastRun, openRuns } = await client.status()
    assert.deepEqual([lastRun?.rid, lastRun?.result, lastRun?.exitCode], [short, 'failed', 3])
    const took = Date.parse(lastRun?.endedAt ?? '') - Date.parse(lastRun?.startedAt ?? '')
    assert.equal(lastRun?.durationSeconds, took / SECOND)
    assert.deepEqual(
      openRuns.map(({ rid }) => rid),
      [long],
    )
    await fetch(`${server.url}/p/${monitor.publicId}?rid=${long}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${monitor.pingToken}` },
    })
    const after = await client.status()
    assert.deepEqual([after.lastRun?.rid, after.openRuns], [long, []])
    await signal(server, monitor, '255')
    const { startedAt, durationSeconds, exitCode } = (await client.status()).lastRun ?? {}
    assert.deepEqual([startedAt, durationSeconds, exitCode], [null, null, 255], 'without a start')
  })

  test('at most sixteen runs are open, and the oldest one makes room', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const rids = Array.from({ length: 18 }, () => randomUUID())
    for (const rid of rids)
      assert.deepEqual(await signal(server, monitor, `start?rid=${rid}`), DONE)
    const { openRuns } = await server.mayfly.pulse(monitor).status()
    assert.deepEqual(
      openRuns.map(({ rid }) => rid),
      rids.slice(2),
    )
  })

  test('whatever is no signal is not found, and a rid that is none is an invalid query', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const none = ['256', '-1', '1.5', '007', '1e1', 'started', '99999999999', 'start/x']
    for (const rest of none) assert.deepEqual(await signal(server, monitor, rest), NOT_FOUND, rest)
    const rid = randomUUID()
    for (const rest of ['start?rid=x', `fail?rid=${rid}&rid=${rid}`, '1?rid=', `0?x=${rid}`]) {
      assert.deepEqual(await signal(server, monitor, rest), INVALID_QUERY, rest)
    }
    const stranger = await aMonitor(server)
    for (const rest of ['start', 'fail', '0', 'start?rid=x']) {
      const wrong = { ...monitor, pingToken: stranger.pingToken }
      assert.deepEqual(await signal(server, wrong, rest), NOT_FOUND, rest)
    }
    const { acceptedHeartbeatCount } = await server.mayfly.pulse(monitor).status()
    assert.equal(acceptedHeartbeatCount, 0)
  })

  test('a ping that an alert of this service has caused is answered and records nothing', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const headers = { 'mayfly-alert': 'pulse.late' }
    assert.deepEqual(await ping(server, monitor, { headers }), DONE)
    for (const rest of ['start', 'fail', '0']) {
      assert.deepEqual(await signal(server, { ...monitor, headers }, rest), DONE)
    }
    const { acceptedHeartbeatCount, state, openRuns } = await server.mayfly.pulse(monitor).status()
    assert.deepEqual([acceptedHeartbeatCount, state, openRuns], [0, 'waiting', []])
  })
})

test('signals have a bucket of their own', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const monitor = await aMonitor(server)
  // What is no signal takes nothing from it.
  assert.deepEqual(await signal(server, monitor, 'started'), NOT_FOUND)
  for (let i = 0; i < 10; i++) assert.deepEqual(await signal(server, monitor, 'start'), DONE)
  assert.deepEqual(await signal(server, monitor, 'start'), LIMITED)
  for (let i = 0; i < 5; i++) assert.deepEqual(await ping(server, monitor), DONE)
})
