import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aUser } from '../support/user.ts'

test('pulse schedule takes a line of crontab, says when the next ping is expected, and returns to the interval', async (t) => {
  const { cli } = await aUser(t, { backup: 'pulse' })
  await cli.run(['pulse', 'ping', 'backup'])
  const schedule = ['pulse', 'schedule', 'backup']
  const set = await cli.json([...schedule, '0 3 * * 1-5', '--time-zone', 'Europe/Berlin'])
  const wanted = { cron: '0 3 * * 1-5', timeZone: 'Europe/Berlin', graceSeconds: 900 }
  assert.deepEqual(set.schedule, wanted)
  assert.match(String(set.nextExpectedAt), /T0[12]:00:00\.000Z$/)
  assert.deepEqual((await cli.json(['status', 'backup'])).schedule, wanted)
  assert.equal((await cli.run([...schedule, '0 3 30 2 *', '--time-zone', 'UTC'])).code, 2)
  assert.equal((await cli.run(schedule)).code, 2)
  assert.equal((await cli.run([...schedule, '--off', '0 3 * * *'])).code, 2)
  assert.equal((await cli.run([...schedule, '--off'])).code, 0)
  assert.equal((await cli.run([...schedule, '--off'])).code, 0, 'again')
  assert.equal((await cli.json(['status', 'backup'])).schedule, null)
})
