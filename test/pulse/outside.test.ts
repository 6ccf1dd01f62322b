import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { openClock } from '../../src/db/clock.ts'
import { createOutsideCheck, isElsewhere, lookAt } from '../../src/pulse/outside.ts'
import type { After } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { aDatabase } from '../support/store.ts'
import { until } from '../support/until.ts'

const SECOND = 1_000
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** A service that lives, and looks at itself every ten seconds: `y` when it is reached, `n` when not. */
async function aService(t: After) {
  const db = await aDatabase(t)
  let now = T
  const machine = { now: () => now, monotonic: () => now }
  const events: string[] = []
  const note = ({ event }: { event: string }) => void events.push(event)
  const log = { info: note, warn: note, error: note }
  const clock = await openClock({
    db,
    machine,
    log,
    onReanchor: () => undefined,
    readTime: async () => ({ at: now, monotonic: now }),
  })
  let isReached = true
  const check = createOutsideCheck({
    clock,
    log,
    look: async () => isReached,
  })
  return {
    events,
    async look(answers: string) {
      for (const answer of answers) {
        now += 10 * SECOND
        await clock.beat()
        isReached = answer === 'y'
        await check()
      }
    },
    windows: () =>
      clock
        .windows()
        .map(({ beganAt, endedAt }) => [(beganAt - T) / SECOND, (endedAt - T) / SECOND]),
  }
}

test('three looks in a row that fail are a window since the last one that did not', async (t) => {
  const { look, windows, events } = await aService(t)
  await look('yynnynn')
  assert.deepEqual([windows(), events], [[], []])
  await look('n')
  assert.deepEqual(windows(), [[50, 80]])
  await look('nn')
  assert.deepEqual(windows(), [[50, 100]])
  assert.deepEqual(events, ['pulse.unreachable'])
})

test('the window ends when the service is reached again', async (t) => {
  const { look, windows, events } = await aService(t)
  await look('ynnnny')
  assert.deepEqual(windows(), [[10, 60]])
  assert.deepEqual(events, ['pulse.unreachable', 'pulse.reachable'])
  await look('ynn')
  assert.deepEqual(windows(), [[10, 60]])
})

test('a service that never reached itself concludes nothing', async (t) => {
  const { look, windows } = await aService(t)
  await look('nnnnnn')
  assert.deepEqual(windows(), [])
})

test('a look reaches nothing but an answer of 200 from the address itself', async (t) => {
  let status = 200
  const server = createServer(({ url }, response) => {
    assert.equal(url, '/health')
    response.writeHead(status, { location: '/elsewhere' }).end('{}')
  }).listen(await freePort(), '127.0.0.1')
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const look = lookAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  assert.equal(await look(), true)
  for (status of [302, 404, 502]) assert.equal(await look(), false, String(status))
  server.closeAllConnections()
  server.close()
  assert.equal(await look(), false, 'nobody listens')
})

test('a service looks at itself only through an address that leads out of its machine', () => {
  const here = [
    'http://localhost:8402',
    'http://127.0.0.1',
    'https://127.9.9.9',
    'http://[::1]:1',
    'http://[::ffff:127.0.0.1]',
  ]
  assert.deepEqual(here.filter(isElsewhere), [])
  const elsewhere = ['https://mayfly.example', 'https://203.0.113.7', 'http://[2001:db8::1]:8402']
  assert.deepEqual(elsewhere.filter(isElsewhere), elsewhere)
})

test('a service that calls nobody does not call its own address', async (t) => {
  const asked: string[] = []
  t.mock.method(globalThis, 'fetch', async (url: unknown) => {
    asked.push(String(url))
    return new Response()
  })
  const silent = await startServer(t, {
    MAYFLY_BASE_URL: 'https://silent.example',
    MAYFLY_OUTBOUND: 'off',
  })
  const other = await startServer(t, { MAYFLY_BASE_URL: 'https://other.example' })
  for (const { clock } of [silent, other]) clock.advance(10 * SECOND)
  await until('the other looks', () => asked.includes('https://other.example/health'))
  assert.deepEqual(
    asked.filter((url) => url.includes('silent')),
    [],
  )
})
