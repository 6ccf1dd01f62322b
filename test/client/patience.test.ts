/** What the SDK does with answers that are lost, late or without an end, and how long it waits for them. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { suite, type TestContext, test } from 'node:test'
import {
  createMayfly,
  formatWhisperCode,
  type Mayfly,
  MayflyError,
} from '../../src/client/index.ts'
import { newId } from '../../src/lib/ids.ts'
import { aToken } from '../support/tokens.ts'

type Answer = () => Promise<Response>

const lost: Answer = async () => {
  throw new TypeError('fetch failed')
}
const away: Answer = async () => Response.json({ error: 'service unavailable' }, { status: 503 })
const limited =
  (seconds: number): Answer =>
  async () =>
    Response.json(
      { error: 'rate limited' },
      { status: 429, headers: { 'retry-after': String(seconds) } },
    )

/** A service that gives these answers in turn; its last one stays. */
function service(...answers: [Answer, ...Answer[]]): { mayfly: Mayfly; asked: () => number } {
  let asked = 0
  const mayfly = createMayfly({
    baseUrl: 'https://mayfly.example',
    fetch: () => (answers[asked++] ?? answers.at(-1) ?? lost)(),
  })
  return { mayfly, asked: () => asked }
}

const monitorOf = ({ mayfly }: { mayfly: Mayfly }) =>
  mayfly.pulse({
    publicId: newId('pulse'),
    ownerToken: aToken('pulse_owner'),
    pingToken: aToken('pulse_ping'),
  })

const inboxOf = ({ mayfly }: { mayfly: Mayfly }) =>
  mayfly.catch({ publicId: newId('catch'), ownerToken: aToken('catch_owner') })

test('a ping whose answer is lost, or that meets a busy service, is sent again', async () => {
  const noContent: Answer = async () => new Response(null, { status: 204 })
  const flaky = service(lost, away, limited(0), noContent)
  await monitorOf(flaky).ping()
  assert.equal(flaky.asked(), 4)
})

test('a service, or a proxy, that says "again in 0 s" is not asked without a pause', async () => {
  for (const ask of [
    (world: ReturnType<typeof service>) => inboxOf(world).status({ timeoutMs: 600 }),
    (world: ReturnType<typeof service>) => inboxOf(world).next({ timeoutMs: 600 }),
  ]) {
    const busy = service(limited(0))
    await assert.rejects(ask(busy), { name: 'MayflyError' })
    assert.ok(busy.asked() <= 4, `asked ${busy.asked()} times`)
  }
})

test('what only reads is repeated, whichever product it asks about', async () => {
  const status = async () => Response.json({ state: 'up', expiresAt: '2030-01-01T00:00:00.000Z' })
  const page = async () => Response.json({ events: [], nextCursor: null, latestSequence: 0 })
  const catalog = async () => Response.json({ checkoutEnabled: true, products: {} })
  const bytes = async () =>
    new Response('x', { headers: { 'content-type': 'application/octet-stream' } })
  const receipt = async () => Response.json({ state: 'open', reads: [] })
  for (const [answer, ask] of [
    [status, (made) => monitorOf(made).status()],
    [page, (made) => inboxOf(made).page()],
    [catalog, ({ mayfly }) => mayfly.catalog()],
    [bytes, (made) => inboxOf(made).body('event_1')],
    [
      receipt,
      ({ mayfly }) =>
        mayfly
          .whisperReceipt({
            publicId: newId('whisper'),
            receiptToken: aToken('whisper_receipt'),
          })
          .status(),
    ],
  ] as [Answer, (made: ReturnType<typeof service>) => Promise<unknown>][]) {
    const flaky = service(lost, answer)
    await ask(flaky)
    assert.equal(flaky.asked(), 2)
  }
})

test('what changes something, or spends a read, is sent once', async () => {
  for (const ask of [
    (made) => monitorOf(made).rotateToken('ping'),
    (made) => monitorOf(made).update({ name: 'x' }),
    (made) => inboxOf(made).deleteEvent('event_1'),
    ({ mayfly }) => mayfly.fetchWhisper(CODE),
    ({ mayfly }) => mayfly.readWhisper(CODE),
  ] as ((made: ReturnType<typeof service>) => Promise<unknown>)[]) {
    const gone = service(lost)
    await assert.rejects(ask(gone), { phrase: 'service unreachable' })
    assert.equal(gone.asked(), 1)
  }
})

test('a wait that is longer than the patience of the caller ends at once, and the error says how long', async () => {
  const busy = service(limited(21_674))
  for (const options of [{}, { timeoutMs: 60_000 }]) {
    await assert.rejects(monitorOf(busy).status(options), {
      phrase: 'rate limited',
      retryAfterSeconds: 21_674,
      message: 'rate limited (HTTP 429; try again in 21674 s)',
    })
  }
  assert.equal(busy.asked(), 2)
})

test('what is sold out is said at once, and a purchase that would wait for hours ends before anything is paid', async () => {
  const soldOut = async () => Response.json({ error: 'sold out' }, { status: 503 })
  const onInvoice = () => assert.fail('an invoice')
  const buy = ({ mayfly }: { mayfly: Mayfly }) => mayfly.buyCatch({ planId: 'spark', onInvoice })
  for (const [answer, ask, phrase] of [
    [soldOut, ({ mayfly }) => mayfly.catalog(), 'sold out'],
    [soldOut, buy, 'sold out'],
    [limited(21_674), buy, 'rate limited'],
  ] as [Answer, (made: ReturnType<typeof service>) => Promise<unknown>, string][]) {
    const refusing = service(answer)
    await assert.rejects(ask(refusing), { phrase })
    assert.equal(refusing.asked(), 1)
  }
})

test('a purchase ends after its time', async () => {
  const gone = service(lost)
  const purchase = { planId: 'spark', onInvoice: () => undefined, timeoutMs: 50 } as const
  await assert.rejects(gone.mayfly.buyCatch(purchase), { name: 'TimeoutError' })
})

test('what its caller has ended fails as the caller says, whatever its connection fails with', async () => {
  const why = new Error('the caller has left')
  const gone = service(lost)
  const ended = { signal: AbortSignal.abort(why) }
  await assert.rejects(gone.mayfly.catalog(ended), why)
  const leaving = new AbortController()
  const left = hanging(never).fetchWhisper(CODE, { signal: leaving.signal })
  leaving.abort(why)
  await assert.rejects(left, why)
  const purchase = { planId: 'spark', onInvoice: () => undefined, ...ended } as const
  await assert.rejects(gone.mayfly.buyCatch(purchase), why)
})

test('a call ends when its time is over, the body included', async () => {
  for (const answer of [never, async (signal: AbortSignal) => new Response(endless(signal))]) {
    await assert.rejects(hanging(answer).catalog({ timeoutMs: 50 }), (error) => {
      assert.ok(error instanceof MayflyError)
      assert.equal(error.phrase, 'service unreachable')
      assert.match(String(error.cause), /TimeoutError: The service did not answer in/)
      return true
    })
  }
})

test('a signal ends a call with its own reason, also between two tries', async () => {
  const leaving = new AbortController()
  const reason = new Error('enough')
  const busy = service(async () => {
    setImmediate(() => leaving.abort(reason))
    return limited(3)()
  })
  await assert.rejects(busy.mayfly.catalog({ signal: leaving.signal }), reason)
  assert.equal(busy.asked(), 1)
})

test('neither a lost call nor a repeated one leaves a timer, or a listener of its signal', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((what) => what === 'Timeout').length
  const { signal } = new AbortController()
  const before = timers()
  await assert.rejects(monitorOf(service(lost)).update({ name: 'x' }, { signal }))
  const catalog = async () => Response.json({ checkoutEnabled: true, products: {} })
  await service(limited(0), catalog).mayfly.catalog({ signal })
  assert.deepEqual([timers(), getEventListeners(signal, 'abort').length], [before, 0])
})

test('a phrase that could steer a terminal is not taken from a service', async () => {
  for (const error of ['\u001b[2Jgone', 'x'.repeat(81), '', 'a\nb', 7]) {
    const strange = service(async () => Response.json({ error }, { status: 400 }))
    await assert.rejects(strange.mayfly.catalog(), { phrase: 'unexpected answer', status: 400 })
  }
})

suite('a service that accepts and does not end', () => {
  test('a service that accepts and never answers is given up after a minute', async (t) => {
    const mayfly = onTimersOf(t, never)
    await assertGivenUp(t, MINUTE, mayfly.pulse(pulse).destroy())
  })

  test('a service that accepts and answers without an end is given up after a quarter of an hour', async (t) => {
    const headers = { 'content-type': 'application/octet-stream' }
    const read = Promise.withResolvers<void>()
    const mayfly = onTimersOf(
      t,
      async (signal) => new Response(endless(signal, read.resolve), { headers }),
    )
    const fetched = mayfly.fetchWhisper(CODE)
    // The limit on the body begins before it is read.
    await read.promise
    await assertGivenUp(t, 15 * MINUTE, fetched)
  })

  test('a service that accepts and streams is read for as long as its reader likes', async (t) => {
    const headers = { 'content-type': 'text/event-stream' }
    let hasAborted = false
    const mayfly = onTimersOf(t, async (signal) => {
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
    const mayfly = hanging(never)
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

/** A service that takes each request, and answers when it likes. */
const hanging = (answer: (signal: AbortSignal) => Promise<Response>): Mayfly =>
  createMayfly({
    baseUrl: 'https://mayfly.example',
    fetch: (_input, init) => answer(init?.signal as AbortSignal),
  })

/** The same, on timers that the test owns. */
function onTimersOf(t: TestContext, answer: (signal: AbortSignal) => Promise<Response>): Mayfly {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return hanging(answer)
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

/** The call goes on until the last millisecond of this time, and no longer. */
async function assertGivenUp(t: TestContext, ms: number, asked: Promise<unknown>): Promise<void> {
  const ended: unknown[] = []
  const done = asked.catch((error: unknown) => {
    ended.push(error)
  })
  t.mock.timers.tick(ms - 1)
  await settle()
  assert.equal(ended.length, 0)
  t.mock.timers.tick(1)
  await done
  assert.deepEqual(ended.map(String), ['MayflyError: service unreachable'])
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const CODE = formatWhisperCode({
  publicId: newId('whisper'),
  readToken: aToken('whisper_read'),
  key: new Uint8Array(32),
  hasPassword: false,
})

const pulse = { publicId: newId('pulse'), pingToken: aToken('pulse_ping') }

const MINUTE = 60_000
