/** What becomes of the answers of the client for NIP-47, and of its silence. No wallet, no relay. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { type TestContext, test } from 'node:test'
import {
  Nip47NetworkError,
  Nip47PublishError,
  Nip47PublishTimeoutError,
  Nip47ReplyTimeoutError,
  Nip47ResponseDecodingError,
  Nip47UnsupportedEncryptionError,
  Nip47WalletError,
} from '@getalby/sdk/nwc'
import type { NodeFailure } from '../../../src/lightning/node/error.ts'
import { NODE_TIMEOUTS, type NodeTimeouts } from '../../../src/lightning/node/node.ts'
import { createNwcCalls, type NwcCall } from '../../../src/lightning/nwc/calls.ts'
import type { NwcClient } from '../../../src/lightning/nwc/client.ts'
import { until } from '../../support/until.ts'

const HASH = 'ab'.repeat(32)
const OTHER = 'cd'.repeat(32)
const SECRET = 'ef'.repeat(32)
const LOOKUP: NwcCall = {
  what: 'looking up an invoice',
  method: 'lookup_invoice',
  params: { payment_hash: HASH },
  timeoutMs: 60_000,
}
const never = () => new Promise<never>(() => {})
const refusal = () => Promise.reject(new Nip47WalletError('no', 'RESTRICTED'))

/** The calls over a client whose methods a test replaces. */
function aWorld(changes: Partial<NwcClient> = {}, timeouts: Partial<NodeTimeouts> = {}) {
  const asked: unknown[][] = []
  const warnings: string[] = []
  /** What the client calls for each notification, one for each subscription that has not ended. */
  const subscribed: ((notification: unknown) => void)[] = []
  let subscriptions = 0
  let closed = 0
  const client: NwcClient = {
    request: () => Promise.resolve({}),
    async subscribe(onPayment) {
      subscriptions++
      subscribed.push(onPayment)
      return () => void subscribed.splice(subscribed.indexOf(onPayment), 1)
    },
    close: () => void closed++,
    ...changes,
  }
  const calls = createNwcCalls({
    client: {
      ...client,
      request: (...request) => {
        asked.push(request)
        return client.request(...request)
      },
    },
    timeouts: { ...NODE_TIMEOUTS, retryFirstMs: 1, retryMaxMs: 2, ...timeouts },
    onWarning: (message) => warnings.push(message),
  })
  return {
    calls,
    asked,
    warnings,
    subscribed,
    subscriptions: () => subscriptions,
    closed: () => closed,
    say: (notification: unknown) => {
      for (const listener of subscribed) listener(notification)
    },
  }
}

/** Watches until the test ends. */
function watching(
  t: TestContext,
  { calls }: ReturnType<typeof aWorld>,
  onSettled: (hash: string) => void = () => {},
) {
  const stop = new AbortController()
  const ended = calls.watch(onSettled, stop.signal)
  const end = async () => {
    stop.abort()
    await ended
  }
  t.after(end)
  return { end, signal: stop.signal }
}

const received = (payment_hash: unknown) => ({ notification: { payment_hash } })
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test("a call of a wallet hands on its method, its parameters and its time, and the wallet's result", async () => {
  const { calls, asked, closed } = aWorld({ request: () => Promise.resolve({ state: 'settled' }) })
  assert.deepEqual(await calls.call(LOOKUP), { state: 'settled' })
  assert.deepEqual(asked, [['lookup_invoice', { payment_hash: HASH }, 60_000]])
  calls.close()
  assert.equal(closed(), 1)
})

test('a call of a wallet that was answered, or failed, leaves no timer that would keep the process', async () => {
  for (const request of [() => Promise.resolve({}), refusal]) {
    const { calls } = aWorld({ request })
    const before = timers()
    await calls.call(LOOKUP).catch(() => {})
    assert.ok(timers() <= before)
  }
})

test('a call of a wallet ends in time when the client never answers', async () => {
  const { calls } = aWorld({ request: never })
  await assert.rejects(calls.call({ ...LOOKUP, timeoutMs: 1 }), {
    name: 'NodeError',
    reason: 'timeout',
    message: 'NWC: looking up an invoice took too long',
  })
})

test('each failure of a wallet is told by its kind, and without what may be secret', async () => {
  const tooLong = 'looking up an invoice took too long'
  const unreadable = 'looking up an invoice got an unreadable answer'
  const failed = 'looking up an invoice failed'
  const table: [error: unknown, reason: NodeFailure, message: string][] = [
    [new Nip47ReplyTimeoutError(SECRET, 'INTERNAL'), 'timeout', tooLong],
    [new Nip47PublishTimeoutError(SECRET, 'INTERNAL'), 'timeout', tooLong],
    // The relay may have it later: a wallet that begins, or that moves to this relay.
    [new Error(`no info event (kind 13194) returned from relay for ${SECRET}`), 'timeout', tooLong],
    [new Nip47ResponseDecodingError(SECRET, 'INTERNAL'), 'malformed', unreadable],
    [new Nip47UnsupportedEncryptionError(SECRET, 'INTERNAL'), 'malformed', unreadable],
    [new Nip47NetworkError(SECRET, 'OTHER'), 'unreachable', failed],
    [new Nip47PublishError(SECRET, 'INTERNAL'), 'unreachable', failed],
    [new AggregateError([], SECRET), 'unreachable', failed],
    [new Error(`there is no info event of ${SECRET}`), 'unreachable', failed],
    [{ message: 'no info event' }, 'unreachable', failed],
    [SECRET, 'unreachable', failed],
  ]
  for (const [error, reason, message] of table) {
    const { calls } = aWorld({ request: () => Promise.reject(error) })
    await assert.rejects(
      calls.call(LOOKUP),
      (told: Error & { reason: string; answer: unknown }) => {
        assert.deepEqual(
          [told.message, told.reason, told.answer],
          [`NWC: ${message}`, reason, undefined],
        )
        return told.name === 'NodeError'
      },
    )
  }
})

test("a wallet's refusal is told by its code and its words, shortened, and without secrets", async () => {
  const long = 'word '.repeat(50)
  const table: [code: unknown, message: string, answer: { code: string; message: string }][] = [
    ['NOT_FOUND', 'no such invoice', { code: 'NOT_FOUND', message: 'no such invoice' }],
    [404, `of ${SECRET}`, { code: '404', message: 'of …' }],
    [SECRET, 'odd', { code: '…', message: 'odd' }],
    ['OTHER', long, { code: 'OTHER', message: long.slice(0, 200) }],
  ]
  for (const [code, message, answer] of table) {
    const error = new Nip47WalletError(message, code as string)
    const { calls } = aWorld({ request: () => Promise.reject(error) })
    await assert.rejects(calls.call(LOOKUP), {
      name: 'NodeError',
      reason: 'refused',
      answer,
      message: `NWC: looking up an invoice was refused: ${answer.code}, ${answer.message}`,
    })
  }
})

test("a wallet's notification is a hint if it has a payment hash, and nothing otherwise", async (t) => {
  const world = aWorld()
  const told: string[] = []
  watching(t, world, (hash) => told.push(hash))
  await until('a subscription', () => world.subscribed.length === 1)
  for (const notification of [
    ...[null, 'text', {}, { notification: null }, { notification: 'text' }, { notification: {} }],
    ...[1, [HASH], `${HASH}ab`, `x${HASH}`, HASH.toUpperCase(), ''].map(received),
  ]) {
    world.say(notification)
  }
  assert.deepEqual(told, [])
  world.say(received(HASH))
  world.say(received(OTHER))
  world.say(received(HASH))
  assert.deepEqual(told, [HASH, OTHER, HASH])
  assert.deepEqual(world.warnings, [])
})

test("a wallet's watch ends its subscription when it is stopped, and leaves nothing at the signal", async (t) => {
  const world = aWorld()
  const { end, signal } = watching(t, world)
  await until('a subscription', () => world.subscribed.length === 1)
  await end()
  assert.equal(world.subscribed.length, 0)
  assert.equal(world.subscriptions(), 1)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  assert.deepEqual(world.warnings, [])
})

test("a wallet's watch that is stopped while it subscribes ends at once, and the subscription as soon as it is there", async (t) => {
  const { promise, resolve } = Promise.withResolvers<() => void>()
  let ended = 0
  const world = aWorld({ subscribe: () => promise })
  await watching(t, world).end()
  resolve(() => void ended++)
  await until('the end of the subscription', () => ended === 1)
  assert.deepEqual(world.warnings, [])
})

test("a wallet's watch gives up on a subscription that takes too long, and ends it when it is there after all", async (t) => {
  const { promise, resolve } = Promise.withResolvers<() => void>()
  let [tries, ended] = [0, 0]
  const world = aWorld(
    { subscribe: () => (++tries === 1 ? promise : Promise.resolve(() => {})) },
    { infoMs: 1 },
  )
  watching(t, world)
  await until('another subscription', () => tries === 2)
  resolve(() => void ended++)
  await until('the end of the first', () => ended === 1)
  assert.deepEqual(world.warnings, ['NWC: following the payments took too long; connecting again'])
})

test("a wallet's watch subscribes anew when the wallet does not answer any more, and warns of each such outage", async (t) => {
  const world = aWorld(
    { request: () => Promise.reject(new Nip47ReplyTimeoutError('no', 'INTERNAL')) },
    { probeEveryMs: 1 },
  )
  const { signal } = watching(t, world)
  await until('some subscriptions', () => world.subscriptions() >= 4)
  assert.ok(world.subscribed.length <= 1)
  const warning = 'NWC: asking for the wallet took too long; connecting again'
  assert.deepEqual(world.warnings.slice(0, 2), [warning, warning])
  assert.deepEqual(new Set(world.warnings), new Set([warning]))
  assert.deepEqual(world.asked[0], ['get_info', {}, NODE_TIMEOUTS.infoMs])
  // Of the connection, or of the pause after it.
  assert.ok(getEventListeners(signal, 'abort').length <= 2)
})

test("a wallet's watch subscribes anew, and warns, when the service fails on a notification", async (t) => {
  const world = aWorld()
  watching(t, world, () => {
    throw new Error('the service failed')
  })
  await until('the subscription', () => world.subscribed.length === 1)
  world.say(received(HASH))
  await until('another subscription', () => world.subscriptions() === 2)
  assert.deepEqual(world.warnings, ['NWC: the cursor or the listener failed; connecting again'])
})

test("a wallet's watch goes on with its subscription while the wallet answers, with a refusal too", async (t) => {
  for (const request of [() => Promise.resolve({}), refusal]) {
    const world = aWorld({ request }, { probeEveryMs: 1 })
    const told: string[] = []
    watching(t, world, (hash) => told.push(hash))
    await until('some answers', () => world.asked.length >= 5)
    world.say(received(HASH))
    assert.deepEqual(told, [HASH])
    assert.equal(world.subscriptions(), 1)
    assert.deepEqual(world.warnings, [])
  }
})
