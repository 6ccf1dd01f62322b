/** LND's invoice stream, broken in ways that a real node does not break it on demand. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLnd, type LndOptions } from '../../../src/lightning/lnd/lnd.ts'
import { MAX_BODY_BYTES } from '../../../src/lightning/node/http.ts'
import { until } from '../../support/until.ts'
import { invoice, MACAROON, send, settledHash, settlement, startFakeLnd } from './fake-lnd.ts'

test("LND's watch asks for what came after the cursor, and moves the cursor on", async () => {
  await using world = await aWorld({ from: 7 })
  const stream = await world.connection(0)
  stream.write(settlement(8))
  stream.write(settlement(9))
  await world.isTold([8, 9])
  assert.deepEqual(world.asked(), [7])
  assert.equal(world.settleIndex(), 9)
})

test("LND's watch begins anew where the cursor was dropped while the node was away, for it is another node", async () => {
  let isAway = true
  await using world = await aWorld({ from: 7, refuse: () => isAway })
  await until('an attempt', () => world.asked().length > 0)
  world.dropCursor()
  // An attempt that read the old cursor may still be on its way: the node stays away until it ended.
  await until('an attempt without a cursor', () => world.asked().at(-1) === 0)
  isAway = false
  const stream = await world.connection(0)
  stream.write(settlement(1))
  await world.isTold([1])
  assert.deepEqual(world.warnings, [
    'LND: following the invoices was refused: permission denied; connecting again',
  ])
  assert.equal(world.settleIndex(), 1)
})

test("LND's watch reads an event that comes in pieces, and several that come at once", async () => {
  await using world = await aWorld()
  const stream = await world.connection(0)
  const [first, second] = [settlement(1), settlement(2)]
  stream.write(first.slice(0, 10))
  // Its own packet: the event loop has to turn before the rest follows.
  await until('the piece to be sent', () => stream.writableLength === 0)
  stream.write(first.slice(10) + second + settlement(3))
  await world.isTold([1, 2, 3])
})

test("LND's watch leaves out an event that is unreadable or too long, and tells of the next", async () => {
  await using world = await aWorld()
  const stream = await world.connection(0)
  // A number of a settlement that the cursor cannot be is no number.
  const wrong = ['-1', '1.5', String(2 ** 53)].map((settle_index) =>
    JSON.stringify({ result: invoice({ state: 'SETTLED', settle_index }) }),
  )
  const lines = [
    '<html>',
    '{}',
    '{"result":{"state":"SETTLED"}}',
    settlement(9)
      .trim()
      .padStart(MAX_BODY_BYTES + 1),
    ...wrong,
  ]
  for (const line of lines) stream.write(`${line}\n`)
  stream.write(`${settlement(1).trim().padStart(MAX_BODY_BYTES)}\n`)
  await world.isTold([1])
  assert.deepEqual(
    world.warnings,
    lines.map(() => 'LND: an event of the invoice stream is unreadable'),
  )
  assert.deepEqual(world.asked(), [0])
})

test("LND's watch does not tell of invoices that are open, held or dead", async () => {
  await using world = await aWorld()
  const stream = await world.connection(0)
  for (const state of ['OPEN', 'ACCEPTED', 'CANCELED']) {
    stream.write(`${JSON.stringify({ result: invoice({ state }) })}\n`)
  }
  stream.write(settlement(1))
  await world.isTold([1])
})

test("LND's watch connects again from where it was when the stream ends, breaks or says an error", async () => {
  await using world = await aWorld()
  const first = await world.connection(0)
  first.end(settlement(1))
  const second = await world.connection(1)
  second.write(settlement(2))
  await world.isTold([1, 2])
  second.destroy()
  const third = await world.connection(2)
  third.write('{"error":{"code":2,"message":"shutting down"}}\n')
  await world.connection(3)
  assert.deepEqual(world.asked(), [0, 1, 2, 2])
  // Each line was a sign of life, so each of these is an outage of its own.
  assert.deepEqual(world.warnings, [
    'LND: the invoice stream ended; connecting again',
    'LND: following the invoices failed (the connection was closed before the answer); connecting again',
    'LND: the invoice stream was ended; connecting again',
  ])
})

test("LND's watch moves the cursor once for a settlement that is said twice, and never back", async () => {
  await using world = await aWorld()
  const stream = await world.connection(0)
  for (const index of [3, 3, 2, 4]) stream.write(settlement(index))
  await world.isTold([3, 3, 2, 4])
  assert.deepEqual(world.written, [3, 4])
})

test("LND's watch goes on when the cursor cannot be kept, or the listener throws", async () => {
  // What was told is not asked for again, kept or not; what was not told is.
  const asked = { cursor: [0, 1], listener: [0, 0] }
  for (const fault of ['cursor', 'listener'] as const) {
    await using world = await aWorld({ faultOnce: fault })
    const first = await world.connection(0)
    first.write(settlement(1))
    const second = await world.connection(1)
    second.write(settlement(2))
    await until('the later settlement', () => world.told.includes(settledHash(2)))
    assert.deepEqual(world.asked(), asked[fault])
    assert.deepEqual(world.warnings, ['LND: the cursor or the listener failed; connecting again'])
  }
})

test("LND's watch connects again when the node of a silent stream does not answer any more", async () => {
  await using world = await aWorld({ mute: true, timeouts: { probeEveryMs: 1, infoMs: 20 } })
  await world.connection(1)
  assert.deepEqual(
    new Set(world.warnings),
    new Set(['LND: asking for the node took too long; connecting again']),
  )
})

type Scene = {
  from?: number
  timeouts?: LndOptions['timeouts']
  /** Whether the n-th attempt to connect is refused. */
  refuse?: (attempt: number) => boolean
  /** Leaves the probe without an answer. */
  mute?: boolean
  /** What fails, the first time only. */
  faultOnce?: 'cursor' | 'listener'
}

async function aWorld(scene: Scene = {}) {
  const streams: ServerResponse[] = []
  const told: string[] = []
  const warnings: string[] = []
  const written: number[] = []
  let attempts = 0
  let settleIndex = scene.from ?? 0
  let fault = scene.faultOnce
  const denial = { code: 2, message: 'permission denied', details: [] }

  const fake = await startFakeLnd(({ line }, response) => {
    if (line.endsWith('getinfo')) return scene.mute ?? false
    if (!line.includes('subscribe')) return false
    if (scene.refuse?.(attempts++)) return send(response, denial, 500)
    streams.push(response)
    return true
  })
  const lnd = createLnd({
    baseUrl: fake.baseUrl,
    macaroon: MACAROON,
    certificate: undefined,
    clock: systemClock,
    timeouts: {
      retryFirstMs: 5,
      retryMaxMs: scene.timeouts?.retryFirstMs ?? 20,
      ...scene.timeouts,
    },
    cursor: {
      read: async () => settleIndex,
      write: async (value) => {
        failOnce('cursor')
        settleIndex = value
        written.push(value)
      },
    },
    onWarning: (message) => warnings.push(message),
  })
  const stop = new AbortController()
  const ended = lnd.watch((paymentHash) => {
    failOnce('listener')
    told.push(paymentHash)
  }, stop.signal)

  function failOnce(what: Scene['faultOnce']): void {
    if (fault !== what) return
    fault = undefined
    throw new Error('broken')
  }

  return {
    told,
    warnings,
    written,
    /** The n-th stream that was opened. */
    connection: (n: number) => until(`connection ${n}`, () => streams[n]),
    isTold: async (indexes: number[]) => {
      await until('word of the settlements', () => told.length >= indexes.length)
      assert.deepEqual(told, indexes.map(settledHash))
    },
    /** The settle_index of each attempt. */
    asked: () =>
      fake.requests.flatMap(
        ({ line }) => /settle_index=(\d+)/.exec(line)?.slice(1).map(Number) ?? [],
      ),
    settleIndex: () => settleIndex,
    dropCursor: () => {
      settleIndex = 0
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
      await lnd.close()
      await fake.close()
    },
  }
}
