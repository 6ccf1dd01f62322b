import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PulseStatus } from '../../src/client/index.ts'
import type { After } from '../support/folder.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** A monitor of a minute of interval and one of grace, which was pinged just now. */
async function aPingedMonitor(t: After, environment: Record<string, string> = {}) {
  const server = await startServer(t, environment)
  const monitor = await aMonitor(server)
  assert.equal((await ping(server, monitor)).status, 204)
  return {
    server,
    monitor,
    status: (): Promise<PulseStatus> => server.mayfly.pulse(monitor).status(),
  }
}

const at = (time: string | null | undefined): number => Date.parse(time ?? '')

test('a service that was killed for two hours blames no job, and one that is dead is late one interval and grace after', async (t) => {
  const { server, monitor, status } = await aPingedMonitor(t)
  await server.mayfly.pulse(monitor).update({ publicStatusEnabled: true })
  const before = await status()
  await server.stop()
  server.clock.advance(8 * SECOND)
  await server.restart()
  const soon = await status()
  assert.deepEqual([soon.lateAt, soon.blindWindows], [before.lateAt, []], 'within seconds')
  await server.stop()
  server.clock.advance(2 * HOUR)
  await server.restart()
  const after = await status()
  assert.equal(after.state, 'operational')
  assert.equal(after.stateChangedAt, before.stateChangedAt)
  const [window] = after.blindWindows
  assert.ok(at(window?.beganAt) >= at(before.createdAt))
  assert.ok(at(window?.endedAt) - at(window?.beganAt) >= 2 * HOUR)
  assert.equal(at(after.lateAt), at(window?.endedAt) + 2 * MINUTE)
  const shared = await server.mayfly.pulsePublicStatus(after.publicStatusId)
  assert.equal(shared.state, 'operational')
  // By that time alone: how long the requests take counts as well.
  await live(server, at(after.lateAt) - 30 * SECOND - server.now())
  assert.equal((await status()).state, 'operational')
  await live(server, 30 * SECOND)
  const late = await status()
  assert.deepEqual([late.state, late.stateChangedAt], ['late', after.lateAt])
  await server.stop()
  server.clock.advance(2 * HOUR)
  await server.restart()
  const still = await status()
  assert.deepEqual([still.state, still.lateAt], ['late', late.lateAt], 'what was late stays late')
})

test('a clock that was set blames no job, and no ping is in the future', async (t) => {
  const { server, status } = await aPingedMonitor(t)
  server.clock.jump(10 * MINUTE)
  assert.equal((await status()).state, 'operational', 'the leap is a window')
  await live(server, 4 * MINUTE)
  assert.equal((await status()).state, 'late')
  server.clock.jump(-2 * HOUR)
  const back = await status()
  assert.ok(at(back.lastPingAt) <= server.now())
  assert.ok(back.recentHeartbeats.every((time) => at(time) <= server.now()))
})
