import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedAddresses } from '../../src/cli/addresses.ts'
import { statusRows } from '../../src/cli/status.ts'
import { away } from '../../src/cli/text.ts'
import type { PulseStatus } from '../../src/client/index.ts'

const NOW = Date.parse('2026-01-02T03:04:05.678Z')
const before = (seconds: number) => new Date(NOW - seconds * 1000).toISOString()

const STATUS: PulseStatus = {
  publicId: 'pulse_x',
  planId: 'spark',
  state: 'operational',
  name: '',
  description: '',
  expectedIntervalSeconds: 60,
  graceSeconds: 60,
  schedule: null,
  publicStatusEnabled: false,
  publicStatusId: 'pulse_status_x',
  heartbeatLimit: 100,
  acceptedHeartbeatCount: 2,
  remainingHeartbeats: 98,
  lastPingAt: before(0.2),
  nextExpectedAt: before(-60),
  lateAt: before(-120),
  stateChangedAt: before(9),
  createdAt: before(99),
  expiresAt: before(-86_400),
  recentHeartbeats: [],
  blindWindows: [],
  failure: null,
  openRuns: [],
  lastRun: null,
}

test('a time less than half a second away is now, on either side', () => {
  assert.deepEqual(
    [0.4, 0, -0.4, 0.6, -0.6].map((seconds) => away(before(seconds), NOW)),
    ['now', 'now', 'now', '1 s ago', 'in 1 s'],
  )
})

test('the status of a monitor on a terminal says why it is late after a failure, and how the last run went', () => {
  const run = { rid: null, startedAt: before(130), endedAt: before(125), durationSeconds: 5.2 }
  const failed = statusRows(
    {
      ...STATUS,
      state: 'late',
      failure: { since: before(600), exitCode: 3 },
      lastRun: { ...run, result: 'failed', exitCode: 3 },
    },
    { now: NOW, shared: {} },
  )
  assert.deepEqual(failed.slice(0, 5), [
    ['state', 'late'],
    ['failed', '10 min ago, exit code 3'],
    ['title', '-'],
    ['last ping', 'now'],
    ['last run', 'failed 2 min ago, exit code 3, after 5 s'],
  ])
  const quick = { ...run, startedAt: null, durationSeconds: null }
  const said = (status: Partial<PulseStatus>) =>
    new Map(statusRows({ ...STATUS, ...status }, { now: NOW, shared: {} })).get('last run')
  assert.equal(
    said({ lastRun: { ...run, result: 'ok', exitCode: 0 } }),
    'succeeded 2 min ago, after 5 s',
  )
  assert.equal(
    said({ lastRun: { ...quick, result: 'failed', exitCode: null } }),
    'failed 2 min ago',
  )
  assert.equal(said({}), undefined)
})

test('the status of a shared monitor on a terminal has the addresses of its page and its badge, and no other has them', () => {
  const baseUrl = 'https://mayfly.example'
  const rowsOf = (status: PulseStatus) =>
    new Map(statusRows(status, { now: NOW, shared: sharedAddresses(baseUrl, status) }))
  const page = `${baseUrl}/status/pulse_status_x`
  const badge = `${baseUrl}/api/pulse/public/pulse_status_x/badge.svg`
  const shared = rowsOf({ ...STATUS, publicStatusEnabled: true })
  assert.equal(shared.get('shared'), page)
  assert.equal(shared.get('badge'), badge)
  assert.equal(shared.get('Markdown'), `[![state](${badge})](${page})`)
  const hidden = rowsOf(STATUS)
  assert.equal(hidden.get('shared'), 'no')
  assert.deepEqual([hidden.has('badge'), hidden.has('Markdown')], [false, false])
})
