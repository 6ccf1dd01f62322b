import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import type { Db } from '../../src/db/db.ts'
import { createApp } from '../../src/http/app.ts'
import { mountReadiness } from '../../src/http/server/health.ts'
import { ownPort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { manualClock, SECOND } from '../support/shop.ts'

test('a service that stops says no first, while it still serves', async (t) => {
  const server = await startServer(t, { ...(await ownPort()), MAYFLY_DRAIN_SECONDS: '5' })
  const stopped = server.stop()
  const answer = await fetch(`${server.url}/ready`)
  assert.deepEqual(
    [answer.status, await answer.json()],
    [503, { error: 'not ready', store: 'up', node: 'up', stopping: true }],
  )
  assert.equal((await fetch(`${server.url}/api/catalog`)).status, 200)
  await stopped
  await assert.rejects(fetch(`${server.url}/ready`))
})

test('a question for readiness leaves no line in the log, and takes from no limit', async (t) => {
  const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'debug', MAYFLY_RATE_LIMITS: 'on' })
  for (let i = 0; i < 300; i++) assert.equal((await fetch(`${server.url}/ready`)).status, 200)
  await fetch(`${server.url}/health`)
  const requests = server.logged.filter((line) => line.includes('http.request'))
  assert.deepEqual(
    requests.map((line) => (JSON.parse(line) as { route: string }).route),
    ['/health'],
  )
})

describe('a part that is away', () => {
  test('a store that is away is named in a 503 with Retry-After', async (t) => {
    const ask = await anApp(t, { read: () => Promise.reject(new Error('gone')) })
    const answer = await ask()
    assert.deepEqual(
      [answer.status, answer.headers.get('retry-after'), await answer.json()],
      [503, '5', { error: 'not ready', store: 'down', node: 'up', stopping: false }],
    )
  })

  test('a store that answers and takes no writes is named in a 503', async (t) => {
    const ask = await anApp(t, { isBeating: () => false })
    assert.deepEqual(await (await ask()).json(), {
      error: 'not ready',
      store: 'down',
      node: 'up',
      stopping: false,
    })
  })

  test('a store that failed and is back is ready again', async (t) => {
    let isAway = true
    const clock = manualClock()
    const read = async () => (isAway ? Promise.reject(new Error('gone')) : [])
    const ask = await anApp(t, { clock, read })
    assert.equal((await ask()).status, 503)
    isAway = false
    clock.advance(SECOND)
    assert.equal((await ask()).status, 200)
  })

  test('a node that is away is named in a 503 with Retry-After, without a call to the node', async (t) => {
    const ask = await anApp(t, { isNodeReady: () => false })
    assert.deepEqual(await (await ask()).json(), {
      error: 'not ready',
      store: 'up',
      node: 'down',
      stopping: false,
    })
  })

  test('a store that hangs counts as away, and no second read joins the first', async (t) => {
    let reads = 0
    const clock = manualClock()
    const ask = await anApp(t, {
      clock,
      read: () => {
        reads++
        return new Promise(() => {})
      },
    })
    assert.equal((await ask()).status, 503)
    clock.advance(10 * SECOND)
    assert.equal((await ask()).status, 503)
    assert.equal(reads, 1)
  })

  test('a store that answered while the process was held up is not away', async (t) => {
    const { timeout } = AbortSignal
    t.mock.method(AbortSignal, 'timeout', (ms: number) => timeout(ms === SECOND ? 1 : ms))
    const ask = await anApp(t, {
      read: async () => {
        const answer = stat('.')
        queueMicrotask(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50))
        await answer
        return []
      },
    })
    assert.equal((await ask()).status, 200)
  })
})

test('the store is asked once a second, however many ask', async (t) => {
  let reads = 0
  const clock = manualClock()
  const ask = await anApp(t, {
    clock,
    read: async () => {
      reads++
      return []
    },
  })
  await Promise.all(Array.from({ length: 50 }, ask))
  assert.equal(reads, 1)
  clock.advance(SECOND)
  assert.equal((await ask()).status, 200)
  assert.equal(reads, 2)
})

type Parts = {
  read?: Db['read']
  isBeating?: () => boolean
  isNodeReady?: () => boolean
  clock?: { now(): number }
}

async function anApp(t: TestContext, parts: Parts): Promise<() => Promise<Response>> {
  const { read = async () => [], isBeating = () => true, isNodeReady = () => true } = parts
  const { clock = manualClock() } = parts
  const log = pino({ level: 'silent' })
  const app = await createApp({ log })
  mountReadiness(app, {
    db: { read },
    clock: { ...clock, isBeating },
    isNodeReady,
    isStopping: () => false,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  return () => fetch(`${url}/ready`)
}
