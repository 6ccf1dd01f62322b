/** How a stream of settlements is opened again, and how a silent one is told from a dead one. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { type TestContext, test } from 'node:test'
import { unlessAborted } from '../../../src/lib/abort.ts'
import { NodeError, type NodeFailure } from '../../../src/lightning/node/error.ts'
import { NODE_TIMEOUTS } from '../../../src/lightning/node/node.ts'
import { keepFollowing, probeUntilDead } from '../../../src/lightning/node/watch.ts'

const failed = (reason: NodeFailure) => new NodeError('A node', 'asking failed', { reason })

/** Time passes only when `tick` says so. */
function ownedTime(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  return async (ms: number) => {
    await turn()
    t.mock.timers.tick(ms)
    await turn()
  }
}

/** Follows what each attempt does. */
function following(
  t: TestContext,
  attempt: (n: number, onAlive: () => void, connection: AbortController) => unknown,
  timeouts = { ...NODE_TIMEOUTS, retryFirstMs: 100, retryMaxMs: 1_000 },
) {
  let attempts = 0
  const warnings: string[] = []
  const stop = new AbortController()
  const ended = keepFollowing(async (...given) => attempt(attempts++, ...given), {
    node: 'A node',
    timeouts,
    onWarning: (message) => warnings.push(message),
    signal: stop.signal,
    probe: null,
  })
  t.after(() => {
    stop.abort()
    return ended
  })
  return { attempts: () => attempts, warnings, stop, ended }
}

for (const [random, pauses] of [
  [1, [100, 200, 400, 800, 1_000, 1_000]],
  [0, [50, 100, 200, 400, 500, 500]],
] as const) {
  test(`the pauses before a stream is opened again double up to the limit, ${random === 1 ? 'at the longest' : 'and are half as long at the shortest'}`, async (t) => {
    const tick = ownedTime(t)
    t.mock.method(Math, 'random', () => random)
    const { attempts } = following(t, () => {
      throw failed('unreachable')
    })
    for (const [i, pause] of pauses.entries()) {
      await tick(pause - 1)
      assert.equal(attempts(), i + 1)
      await tick(1)
      assert.equal(attempts(), i + 2)
    }
  })
}

test('the pause is the longest one however often a node failed', async (t) => {
  const tick = ownedTime(t)
  t.mock.method(Math, 'random', () => 1)
  const { attempts } = following(
    t,
    () => {
      throw failed('unreachable')
    },
    { ...NODE_TIMEOUTS, retryFirstMs: 1, retryMaxMs: 2 },
  )
  for (let i = 1; i <= 1_100; i++) await tick(2)
  assert.equal(attempts(), 1_101)
})

test('a sign of life ends an outage: the pauses begin anew, and the next outage is warned of again', async (t) => {
  const tick = ownedTime(t)
  t.mock.method(Math, 'random', () => 1)
  const { attempts, warnings } = following(t, (n, onAlive) => {
    if (n === 3) onAlive()
    throw failed('unreachable')
  })
  for (const pause of [100, 200, 400]) await tick(pause)
  assert.equal(attempts(), 4)
  const warning = 'A node: asking failed; connecting again'
  assert.deepEqual(warnings, [warning, warning])
  await tick(99)
  assert.equal(attempts(), 4)
  await tick(1)
  assert.equal(attempts(), 5)
  assert.deepEqual(warnings, [warning, warning])
})

test('what is no failure of the node is told of without its words', async (t) => {
  const { warnings } = following(t, () => {
    throw new Error('with a secret')
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(warnings, ['A node: the cursor or the listener failed; connecting again'])
})

test('a stream that ends without a failure is opened again after the first pause', async (t) => {
  const tick = ownedTime(t)
  t.mock.method(Math, 'random', () => 1)
  const { attempts, warnings } = following(t, () => {})
  for (const attempted of [1, 2, 3]) {
    await tick(99)
    assert.equal(attempts(), attempted)
    await tick(1)
    assert.equal(attempts(), attempted + 1)
  }
  assert.deepEqual(warnings, [])
})

test('following ends when it is stopped: before it began, during an attempt, and in a pause', async (t) => {
  ownedTime(t)
  for (const moment of ['before', 'during', 'after'] as const) {
    const stop = new AbortController()
    if (moment === 'before') stop.abort()
    const warnings: string[] = []
    let attempts = 0
    const { promise, reject } = Promise.withResolvers<never>()
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason))
    const ended = keepFollowing(
      () => {
        attempts++
        return moment === 'after' ? Promise.reject(failed('timeout')) : promise
      },
      {
        node: 'A node',
        timeouts: { ...NODE_TIMEOUTS, retryFirstMs: 100, retryMaxMs: 100 },
        onWarning: (message) => warnings.push(message),
        signal: stop.signal,
        probe: null,
      },
    )
    await new Promise((resolve) => setImmediate(resolve))
    stop.abort()
    await ended
    assert.equal(attempts, moment === 'before' ? 0 : 1)
    assert.equal(warnings.length, moment === 'after' ? 1 : 0)
    promise.catch(() => {})
  }
})

test('a connection that is over is ended: it is asked no more, and nothing of it stays at the signal', async (t) => {
  const tick = ownedTime(t)
  t.mock.method(Math, 'random', () => 1)
  const connections: AbortSignal[] = []
  const stop = new AbortController()
  let asked = 0
  const ended = keepFollowing(
    async (_, { signal }) => {
      connections.push(signal)
      if (connections.length < 3) throw failed('unreachable')
      return await unlessAborted(signal, new Promise<never>(() => {}))
    },
    {
      node: 'A node',
      timeouts: { retryFirstMs: 100, retryMaxMs: 100, probeEveryMs: 1_000 },
      onWarning: () => {},
      signal: stop.signal,
      probe: async () => {
        if (++asked === 3) throw failed('timeout')
      },
    },
  )
  const areOver = () => connections.map(({ aborted }) => aborted)
  await tick(100)
  await tick(100)
  assert.deepEqual(areOver(), [true, true, false])
  assert.equal(getEventListeners(stop.signal, 'abort').length, 1)
  for (const _ of [1, 2]) await tick(1_000)
  assert.deepEqual([asked, ...areOver()], [2, true, true, false])
  // No answer.
  await tick(1_000)
  await tick(100)
  assert.deepEqual([asked, ...areOver()], [3, true, true, true, false])
  stop.abort()
  await ended
  assert.deepEqual(areOver(), [true, true, true, true])
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
  await tick(5_000)
  assert.equal(asked, 3)
})

test('a connection that is never silent is not asked, and stays', async (t) => {
  const tick = ownedTime(t)
  const connections: AbortSignal[] = []
  const { ended, stop } = following(t, (_n, _onAlive, { signal }) => {
    connections.push(signal)
    return unlessAborted(signal, new Promise<never>(() => {}))
  })
  await tick(10 * NODE_TIMEOUTS.probeEveryMs)
  assert.deepEqual(
    connections.map(({ aborted }) => aborted),
    [false],
  )
  stop.abort()
  await ended
})

/** Probes a connection with what each question does. */
function probing(t: TestContext, probe: (n: number) => unknown) {
  const connection = new AbortController()
  const seen = { probes: 0, alive: 0 }
  const ended = probeUntilDead(connection, {
    probe: async () => probe(seen.probes++),
    probeEveryMs: 30_000,
    onAlive: () => void seen.alive++,
  })
  t.after(() => {
    connection.abort()
    return ended
  })
  return { connection, seen, ended }
}

test('a silent connection is asked for a sign of life at each interval, and a refusal is one', async (t) => {
  const tick = ownedTime(t)
  const { connection, seen } = probing(t, (n) => {
    if (n % 2 === 1) throw failed('refused')
  })
  for (const asked of [1, 2, 3, 4]) {
    await tick(29_999)
    assert.deepEqual(seen, { probes: asked - 1, alive: asked - 1 })
    await tick(1)
    assert.deepEqual(seen, { probes: asked, alive: asked })
  }
  assert.equal(connection.signal.aborted, false)
  assert.ok(getEventListeners(connection.signal, 'abort').length <= 1)
})

test('a connection whose node answers in no way is ended with the failure, and not asked again', async (t) => {
  const tick = ownedTime(t)
  for (const failure of [
    ...(['unreachable', 'timeout', 'certificate', 'malformed'] as const).map(failed),
    new TypeError('ours'),
  ]) {
    const { connection, seen, ended } = probing(t, () => {
      throw failure
    })
    await tick(30_000)
    await ended
    assert.equal(connection.signal.reason, failure)
    assert.deepEqual(seen, { probes: 1, alive: 0 })
  }
})

test('a connection that ended is not asked any more, and its last answer is no sign of life', async (t) => {
  const tick = ownedTime(t)
  const silent = probing(t, () => {})
  await tick(29_999)
  silent.connection.abort()
  await silent.ended
  assert.deepEqual(silent.seen, { probes: 0, alive: 0 })

  const { promise, resolve } = Promise.withResolvers<void>()
  const asked = probing(t, () => promise)
  await tick(30_000)
  asked.connection.abort()
  resolve()
  await asked.ended
  assert.deepEqual(asked.seen, { probes: 1, alive: 0 })
})

test('the pause between two questions does not keep the process', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  probing(t, () => {})
  assert.ok(timers() <= before)
})
