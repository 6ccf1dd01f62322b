import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { createMayfly, formatWhisperCode } from '../../src/client/index.ts'
import { newId } from '../../src/lib/ids.ts'
import { aToken } from '../support/tokens.ts'

const MINUTE = 60_000

/** A service that answers as it is told to, on timers that the test owns. */
function aService(t: TestContext, answer: (signal: AbortSignal) => Promise<Response>) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const fetch: typeof globalThis.fetch = (_input, init) => {
    assert.ok(init?.signal)
    return answer(init.signal)
  }
  return createMayfly({ baseUrl: 'https://mayfly.example', fetch })
}

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
  })

/** A body that begins, and breaks off when its request is aborted. `onRead`: somebody reads it. */
const endless = (signal: AbortSignal, onRead: () => void = () => undefined): ReadableStream =>
  new ReadableStream(
    {
      start(controller) {
        signal.addEventListener('abort', () => controller.error(signal.reason))
      },
      pull(controller) {
        controller.enqueue(new Uint8Array(1))
        onRead()
        return new Promise(() => undefined)
      },
    },
    { highWaterMark: 0 },
  )

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const CODE = formatWhisperCode({
  publicId: newId('whisper'),
  readToken: aToken('whisper_read'),
  key: new Uint8Array(32),
  hasPassword: false,
})

const pulse = { publicId: newId('pulse'), pingToken: aToken('pulse_ping') }

suite('a service that accepts and does not end', () => {
  test('a service that accepts a read of a whisper is given up as soon as its caller says so', async () => {
    const mayfly = createMayfly({
      baseUrl: 'https://mayfly.example',
      fetch: (_input, init) => never(init?.signal as AbortSignal),
    })
    const enough = new AbortController()
    const ended: unknown[] = []
    mayfly.fetchWhisper(CODE, { signal: enough.signal }).catch((error: unknown) => {
      ended.push(error)
    })
    enough.abort(new Error('enough'))
    await settle()
    assert.deepEqual(ended.map(String), ['Error: enough'])
  })

  test('a service that accepts and never answers is given up after a minute', async (t) => {
    const mayfly = aService(t, never)
    const ended: unknown[] = []
    const done = mayfly
      .pulse(pulse)
      .destroy()
      .catch((error: unknown) => {
        ended.push(error)
      })
    t.mock.timers.tick(MINUTE - 1)
    await settle()
    assert.equal(ended.length, 0)
    t.mock.timers.tick(1)
    await done
    assert.deepEqual(ended.map(String), ['MayflyError: service unreachable'])
  })

  test('a service that accepts and answers without an end is given up after a quarter of an hour', async (t) => {
    const headers = { 'content-type': 'application/octet-stream' }
    const read = Promise.withResolvers<void>()
    const mayfly = aService(
      t,
      async (signal) => new Response(endless(signal, read.resolve), { headers }),
    )
    const ended: unknown[] = []
    const fetched = mayfly.fetchWhisper(CODE).catch((error: unknown) => {
      ended.push(error)
    })
    // The limit on the body begins before it is read.
    await read.promise
    t.mock.timers.tick(15 * MINUTE - 1)
    await settle()
    assert.equal(ended.length, 0)
    t.mock.timers.tick(1)
    await fetched
    assert.deepEqual(ended.map(String), ['MayflyError: service unreachable'])
  })

  test('a service that accepts and streams is read for as long as its reader likes', async (t) => {
    const headers = { 'content-type': 'text/event-stream' }
    let hasAborted = false
    const mayfly = aService(t, async (signal) => {
      signal.addEventListener('abort', () => {
        hasAborted = true
      })
      return new Response(endless(signal), { headers })
    })
    const reader = new AbortController()
    const stream = mayfly
      .pulse({ ...pulse, ownerToken: aToken('pulse_owner') })
      .stream({ signal: reader.signal })
    const next = stream.next().catch(() => undefined)
    await settle()
    t.mock.timers.tick(24 * 60 * MINUTE)
    await settle()
    assert.equal(hasAborted, false)
    reader.abort()
    await next
    assert.equal(hasAborted, true)
  })

  test('a service that accepts and never answers is left when the time of the call is over, whatever the call', async () => {
    const mayfly = createMayfly({
      baseUrl: 'https://mayfly.example',
      fetch: (_input, init) => never(init?.signal as AbortSignal),
    })
    const limit = { timeoutMs: 5 }
    const inbox = mayfly.catch({ publicId: newId('catch'), ownerToken: aToken('catch_owner') })
    const monitor = mayfly.pulse({ ...pulse, ownerToken: aToken('pulse_owner') })
    const receipt = mayfly.whisperReceipt({ publicId: newId('whisper'), receiptToken: 'x' })
    const gate = mayfly.gate({ projectId: newId('gate_project'), capability: 'x' })
    const asked = { route: 'ping', method: 'GET', path: '/ping' }
    const terms = { planId: 'spark', onInvoice() {}, ...limit } as const
    const calls = [
      mayfly.catalog(limit),
      mayfly.buyCatch(terms),
      mayfly.recover({ bolt11: 'x', preimage: 'x' }, limit),
      mayfly.pulsePublicStatus('x', limit),
      ...[inbox.status(limit), inbox.page({}, limit), inbox.next(limit)],
      ...[inbox.stream({ after: 0, ...limit }).next(), inbox.deleteEvent('x', limit)],
      ...[monitor.ping(limit), monitor.status(limit), monitor.update({ name: 'x' }, limit)],
      ...[monitor.stream(limit).next(), monitor.alerts(limit), monitor.rotateToken('ping', limit)],
      ...[receipt.status(limit), receipt.destroy(limit)],
      ...[gate.intent(asked, 'key', limit), gate.prove('x', 'x', limit), gate.poll('x', limit)],
      ...[gate.giveBack('x', 'x', limit), gate.verifyReceipt('x', asked, limit)],
    ]
    const ended = await Promise.allSettled(calls)
    assert.deepEqual(new Set(ended.map(({ status }) => status)), new Set(['rejected']))
  })
})
