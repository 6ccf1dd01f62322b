import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uptimeSince } from '../../src/cli/pulse/history.ts'
import type { PulseHistory } from '../../src/client/index.ts'
import { aUser } from '../support/user.ts'

test('pulse history shows the newest entries and the uptime, all of them on request', async (t) => {
  const { cli } = await aUser(t, { backup: 'pulse' })
  const history = ['pulse', 'history', 'backup']
  assert.deepEqual((await cli.json(history)).entries, [])
  for (let i = 0; i < 23; i++) await cli.run(['pulse', 'ping', 'backup'])
  await cli.run(['pulse', 'run', 'backup', '--', 'false'])
  const newest = (await cli.json(history)) as unknown as PulseHistory
  assert.equal(newest.entries.length, 20)
  const { type, exitCode, run } = newest.entries.find((entry) => entry.type === 'failed') ?? {}
  assert.deepEqual([type, exitCode, typeof run?.durationSeconds], ['failed', 1, 'number'])
  assert.equal(typeof newest.uptime.last24Hours, 'number')
  const count = async (...options: string[]): Promise<number> =>
    ((await cli.json([...history, ...options])).entries as unknown[]).length
  assert.equal(await count('--limit', '3'), 3)
  assert.equal(await count('--all'), 25)
  assert.equal((await cli.run([...history, '--all', '--limit', '3'])).code, 2)
  assert.equal((await cli.run([...history, '--limit', '0'])).code, 2)
})

test('the uptime of a young monitor is that of its life, and of no longer period', () => {
  const uptime = {
    until: '2026-03-31T00:00:00Z',
    last24Hours: 0.07389,
    last7Days: 0.5,
    last30Days: 1,
  }
  for (const [createdAt, told] of [
    ['2026-03-30T23:56:00Z', 'uptime 7.38 % over 4 min'],
    ['2026-03-28T00:00:00Z', 'uptime 7.38 % over 24 h, 50 % over 3 d'],
    ['2026-02-01T00:00:00Z', 'uptime 7.38 % over 24 h, 50 % over 7 d, 100 % over 30 d'],
  ] as const) {
    assert.equal(uptimeSince(uptime, createdAt), told)
  }
  const none = { ...uptime, last24Hours: null, last7Days: null, last30Days: null }
  assert.equal(uptimeSince(none, '2026-03-30T23:56:00Z'), 'no uptime yet')
})
