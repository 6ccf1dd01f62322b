import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { PulseSchedule } from '../../src/client/index.ts'
import { answerOf } from '../support/answer.ts'
import {
  aMonitor,
  INVALID_BODY,
  INVALID_SETTINGS,
  live,
  type Owner,
  ping,
} from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { mayflyError } from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HALF_HOURS: PulseSchedule = { cron: '*/30 * * * *', timeZone: 'UTC', graceSeconds: 120 }

/** The next half hour after a time. */
const nextRun = (time: number) => (Math.floor(time / (30 * MINUTE)) + 1) * 30 * MINUTE

test('a monitor with a schedule is late when a run is missed, and not a moment before its grace is over', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server, 'standard')
  const monitor = server.mayfly.pulse(capability)
  assert.deepEqual(await monitor.setSchedule(HALF_HOURS), HALF_HOURS)
  assert.deepEqual((await monitor.status()).state, 'waiting')
  await ping(server, capability)
  const first = await monitor.status()
  const run = nextRun(Date.parse(first.lastPingAt ?? ''))
  assert.equal(Date.parse(first.nextExpectedAt ?? ''), run)
  assert.equal(Date.parse(first.lateAt ?? ''), run + 2 * MINUTE)

  await live(server, run + MINUTE - server.now())
  assert.equal((await monitor.status()).state, 'operational')
  await live(server, 2 * MINUTE)
  const late = await monitor.status()
  assert.deepEqual([late.state, late.stateChangedAt], ['late', first.lateAt])
  const kept = await monitor.update({ expectedIntervalSeconds: 20 })
  assert.deepEqual([kept.state, kept.stateChangedAt], ['late', first.lateAt])
  await ping(server, capability)
  const again = await monitor.status()
  assert.equal(again.state, 'operational')
  assert.equal(Date.parse(again.nextExpectedAt ?? ''), run + 30 * MINUTE)
})

test('an outage over a scheduled run makes nobody late before the next run and its grace', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server, 'standard')
  const monitor = server.mayfly.pulse(capability)
  await monitor.setSchedule(HALF_HOURS)
  await ping(server, capability)
  const run = nextRun(Date.parse((await monitor.status()).lastPingAt ?? ''))
  await live(server, run - MINUTE - server.now())
  server.clock.advance(10 * MINUTE)
  const { state, lateAt } = await monitor.status()
  assert.deepEqual([state, Date.parse(lateAt ?? '')], ['operational', run + 32 * MINUTE])
})

suite('a schedule', () => {
  const theServer = shareServer()

  test('while there is a schedule the interval is kept and not used, and it counts again without it', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const monitor = server.mayfly.pulse(capability)
    await ping(server, capability)
    await monitor.setSchedule(HALF_HOURS)
    const { schedule, nextExpectedAt } = await monitor.status()
    assert.deepEqual(schedule, HALF_HOURS)
    const changed = await monitor.update({ expectedIntervalSeconds: 20 })
    assert.deepEqual(
      [changed.expectedIntervalSeconds, changed.nextExpectedAt, changed.schedule],
      [20, nextExpectedAt, HALF_HOURS],
    )
    await monitor.deleteSchedule()
    const back = await monitor.status()
    assert.equal(back.schedule, null)
    assert.ok(Date.parse(back.nextExpectedAt ?? '') >= server.now() + 15 * SECOND)
    await assert.rejects(monitor.deleteSchedule(), mayflyError('not found', 404))
  })

  test('a schedule that cron does not know, that never runs, or that is too strict is refused with its field', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const put = (schedule: unknown) => putSchedule(server.url, capability, JSON.stringify(schedule))
    for (const [field, change] of [
      ['cron', { cron: '* * * * * *' }],
      ['cron', { cron: '0 3 30 2 *' }],
      ['cron', { cron: '@daily' }],
      ['cron', { cron: 'x'.repeat(101) }],
      ['timeZone', { timeZone: 'Mars/Base' }],
      ['timeZone', { timeZone: '+01:00' }],
      ['graceSeconds', { graceSeconds: 59 }],
      ['graceSeconds', { graceSeconds: 604_801 }],
      ['more', { more: 1 }],
    ] as const) {
      const response = await put({ ...HALF_HOURS, ...change })
      const body = (await response.json()) as { error: string; field?: string }
      assert.deepEqual(
        [response.status, body.error],
        [400, 'invalid settings'],
        JSON.stringify(change),
      )
      if (field !== 'more') assert.equal(body.field, field)
    }
    assert.deepEqual(await answerOf(await put({ cron: '0 3 * * *' })), INVALID_SETTINGS)
    assert.deepEqual(await answerOf(await putSchedule(server.url, capability, '{')), INVALID_BODY)
    assert.equal((await server.mayfly.pulse(capability).status()).schedule, null)
  })
})

const putSchedule = (url: string, { publicId, ownerToken }: Owner, body: string) =>
  fetch(`${url}/api/pulse/${publicId}/schedule`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${ownerToken}`, 'content-type': 'application/json' },
    body,
  })
