import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Answer } from '../support/answer.ts'
import {
  aMonitor,
  INVALID_BODY,
  INVALID_SETTINGS,
  live,
  owner,
  patch,
  ping,
} from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const UNSUPPORTED = { status: 400, text: '{"error":"unsupported media type"}' }

suite('the owner of a monitor', () => {
  const theServer = shareServer()

  test('the status has every field, in this order', async (t) => {
    const server = await startServer(t)
    const capability = await aMonitor(server)
    const read = async () => JSON.parse((await owner(server, capability, { method: 'GET' })).text)
    const waiting = await read()
    const { createdAt, publicStatusId } = waiting
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(publicStatusId, /^pulse_status_[0-9A-Za-z]{22}$/)
    const expected = {
      publicId: capability.publicId,
      planId: 'spark',
      state: 'waiting',
      name: '',
      description: '',
      expectedIntervalSeconds: 60,
      graceSeconds: 60,
      schedule: null,
      publicStatusEnabled: false,
      publicStatusId,
      heartbeatLimit: 4_500,
      acceptedHeartbeatCount: 0,
      remainingHeartbeats: 4_500,
      lastPingAt: null,
      nextExpectedAt: null,
      lateAt: null,
      stateChangedAt: createdAt,
      createdAt,
      expiresAt: capability.expiresAt,
      recentHeartbeats: [],
      blindWindows: [],
      failure: null,
      openRuns: [],
      lastRun: null,
    }
    assert.equal(Date.parse(capability.expiresAt) - Date.parse(createdAt), DAY)
    assert.equal(JSON.stringify(waiting), JSON.stringify(expected))

    await ping(server, capability)
    await live(server, MINUTE)
    await ping(server, capability)
    const operational = await read()
    const [last, first] = operational.recentHeartbeats
    const plus = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()
    assert.equal(
      JSON.stringify(operational),
      JSON.stringify({
        ...expected,
        state: 'operational',
        acceptedHeartbeatCount: 2,
        remainingHeartbeats: 4_498,
        lastPingAt: last,
        nextExpectedAt: plus(last, MINUTE),
        lateAt: plus(last, 2 * MINUTE),
        stateChangedAt: first,
        recentHeartbeats: [last, first],
      }),
    )
  })

  test('settings change alone or together, and the answer is the status with them', async (t) => {
    const server = await startServer(t)
    const capability = await aMonitor(server)
    const monitor = server.mayfly.pulse(capability)
    const before = await monitor.status()
    assert.deepEqual(await monitor.update({}), before)
    const all = {
      name: 'Nightly ⚡ backup 👨‍👩‍👧',
      description: `\u0000a\u0001\u001f\u007f\u0085\u202e\ufffe\uffff${'😀'.repeat(231)}`,
      expectedIntervalSeconds: 604_800,
      graceSeconds: 604_800,
      publicStatusEnabled: true,
    }
    assert.deepEqual(await monitor.update(all), { ...before, ...all })
    assert.deepEqual(await monitor.status(), { ...before, ...all })
    assert.deepEqual(await monitor.update({ name: '' }), { ...before, ...all, name: '' })
    const unshared = await monitor.update({ publicStatusEnabled: false, description: '' })
    assert.notEqual(unshared.publicStatusId, before.publicStatusId)
    assert.deepEqual(unshared, {
      ...before,
      ...all,
      name: '',
      description: '',
      publicStatusEnabled: false,
      publicStatusId: unshared.publicStatusId,
    })
  })

  test('settings that are refused change nothing', async () => {
    const server = await theServer()
    const capability = await aMonitor(server, 'long')
    const before = await owner(server, capability, { method: 'GET' })
    const refused: [body: string, type: string | null, answer: Answer][] = [
      ['{"graceSeconds":299}', 'application/json', INVALID_SETTINGS],
      ['{"name":"x","graceSeconds":60}', 'application/json', INVALID_SETTINGS],
      ['{"name":"x","surprise":1}', 'application/json', INVALID_SETTINGS],
      ['{"expectedIntervalSeconds":19}', 'application/json', INVALID_SETTINGS],
      ['[]', 'application/json; charset=utf-8', INVALID_SETTINGS],
      ['{"name":"x"', 'application/json', INVALID_BODY],
      ['{"name":"x","graceSeconds":600,"name":"y"}', 'application/json', INVALID_BODY],
      ['', 'application/json', INVALID_BODY],
      ['', null, INVALID_BODY],
      ['{"name":"x"}', 'text/plain', UNSUPPORTED],
      ['{"name":"x"}', 'json', UNSUPPORTED],
      ['name=x', 'application/x-www-form-urlencoded', UNSUPPORTED],
      [
        `{"name":"${' '.repeat(16_384)}"}`,
        'application/json',
        { status: 400, text: '{"error":"request too large"}' },
      ],
    ]
    for (const [body, type, answer] of refused) {
      assert.deepEqual(
        await owner(server, capability, { method: 'PATCH', body, type }),
        answer,
        `${type} ${body}`,
      )
    }
    assert.deepEqual(await owner(server, capability, { method: 'GET' }), before)
    const graces = await patch(server, capability, '{"graceSeconds":300}')
    assert.equal(graces.status, 200)
  })
})

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

  test('a cursor or a limit that is none gets 400 that says what it must be', async () => {
    const server = await theServer()
    const { publicId, ownerToken } = await aMonitor(server)
    const told = async (search: string) => {
      const answer = await fetch(`${server.url}/api/pulse/${publicId}/history?${search}`, {
        headers: { authorization: `Bearer ${ownerToken}` },
      })
      return [answer.status, ((await answer.json()) as { field?: string }).field]
    }
    assert.deepEqual(await told('cursor=MS4yLjM0MA'), [200, undefined])
    for (const cursor of ['', '1', 'A'.repeat(90)]) {
      assert.deepEqual(await told(`cursor=${cursor}`), [400, 'cursor'], cursor)
    }
    for (const limit of ['0', '201', 'x', '1.5']) {
      assert.deepEqual(await told(`limit=${limit}`), [400, 'limit'], limit)
    }
    for (const search of ['page=2', 'cursor=MS4yLng']) assert.equal((await told(search))[0], 400)
  })
})
