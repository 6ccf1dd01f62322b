/** How LND's stream is followed, without a server: `lines` is what a test gives. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { lndError } from '../../../src/lightning/lnd/answers.ts'
import { type WatchOptions, watchSettlements } from '../../../src/lightning/lnd/watch.ts'
import { NODE_TIMEOUTS } from '../../../src/lightning/node/node.ts'
import { settledHash, settlement } from '../../support/fake-lnd.ts'
import { until } from '../../support/until.ts'

/** Gives these lines, and then what ends the stream. Without that it stays silent. */
type Stream = { lines: string[]; end?: () => void }

function aWatch(t: TestContext, streams: Stream[], changes: Partial<WatchOptions> = {}) {
  const opened: { path: string; signal: AbortSignal }[] = []
  const [told, warnings, written]: [string[], string[], number[]] = [[], [], []]
  async function* lines(path: string, signal: AbortSignal) {
    opened.push({ path, signal })
    const { lines, end } = streams[opened.length - 1] ?? { lines: [] }
    yield* lines
    if (end) return end()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    throw signal.reason
  }
  const stop = new AbortController()
  const ended = watchSettlements(
    {
      http: { lines, call: () => assert.fail(), close: () => assert.fail() },
      cursor: { read: async () => 0, write: async (index) => void written.push(index) },
      probe: async () => {},
      timeouts: { ...NODE_TIMEOUTS, retryFirstMs: 1, retryMaxMs: 2 },
      onWarning: (message) => warnings.push(message),
      signal: stop.signal,
      ...changes,
    },
    (hash) => told.push(hash),
  )
  const end = async () => {
    stop.abort()
    await ended
  }
  t.after(end)
  return { opened, told, warnings, written, stop, end }
}

const brokenOff = () => {
  throw lndError('unreachable', 'following the invoices failed (ECONNRESET)')
}

test("LND's watch takes each line for a sign of life, and warns of each outage after one", async (t) => {
  const { opened, told, warnings } = aWatch(t, [
    { lines: [settlement(1)], end: brokenOff },
    { lines: [], end: brokenOff },
    { lines: [settlement(2)], end: () => {} },
    { lines: [] },
  ])
  await until('four connections', () => opened.length === 4)
  assert.deepEqual(told, [1, 2].map(settledHash))
  assert.deepEqual(warnings, [
    'LND: following the invoices failed (ECONNRESET); connecting again',
    'LND: the invoice stream ended; connecting again',
  ])
  assert.deepEqual(
    opened.map(({ path }) => path),
    [0, 1, 1, 2].map((from) => `/v1/invoices/subscribe?settle_index=${from}`),
  )
})

test("LND's watch that is stopped while it reads its cursor ends at once", async (t) => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const { stop, end, opened, warnings } = aWatch(t, [], {
    cursor: { read: () => promise, write: async () => {} },
  })
  stop.abort()
  resolve(0)
  await end()
  assert.ok(opened.every(({ signal }) => signal.aborted))
  assert.deepEqual(warnings, [])
})

test("LND's watch moves the cursor once for a settlement that is said twice, and never back", async (t) => {
  const { told, written } = aWatch(t, [{ lines: [3, 3, 2, 4].map(settlement) }])
  await until('word of all', () => told.length === 4 && written.length === 2)
  assert.deepEqual(written, [3, 4])
})
