import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PulseHistory } from '../../src/client/index.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { startServer } from '../support/server.ts'

test('pulse history shows the newest entries and the uptime, all of them on request', async (t) => {
  const { url } = await startServer(t, { MAYFLY_RATE_LIMITS: 'off' })
  const cli = await commandLine(t, url)
  await cli.run(['buy', 'pulse', '--name', 'backup'], WITH_WALLET)
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
