/** What the SDK does with answers that are lost or late: what may be repeated is, as long as its caller has time. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
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

test('what is sold out is said at once', async () => {
  const empty = service(async () => Response.json({ error: 'sold out' }, { status: 503 }))
  await assert.rejects(empty.mayfly.catalog(), { phrase: 'sold out', status: 503 })
  assert.equal(empty.asked(), 1)
})

test('a purchase that is sold out, or would have to wait for hours, ends before anything is paid', async () => {
  const onInvoice = () => assert.fail('an invoice')
  const empty = async () => Response.json({ error: 'sold out' }, { status: 503 })
  for (const [answer, phrase] of [
    [empty, 'sold out'],
    [limited(21_674), 'rate limited'],
  ] as [Answer, string][]) {
    const refusing = service(answer)
    await assert.rejects(refusing.mayfly.buyCatch({ planId: 'spark', onInvoice }), { phrase })
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
  const purchase = { planId: 'spark', onInvoice: () => undefined, ...ended } as const
  await assert.rejects(gone.mayfly.buyCatch(purchase), why)
})

test('a call ends when its time is over, the body included', async () => {
  const never = (signal: AbortSignal) => new Promise<never>((_, reject) => ended(signal, reject))
  const endless = async (signal: AbortSignal) =>
    new Response(new ReadableStream({ start: (body) => ended(signal, (why) => body.error(why)) }))
  for (const answer of [never, endless]) {
    const hanging = createMayfly({
      baseUrl: 'https://mayfly.example',
      fetch: (_input, init) => answer(init?.signal as AbortSignal),
    })
    await assert.rejects(hanging.catalog({ timeoutMs: 50 }), (error) => {
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

const ended = (signal: AbortSignal, then: (reason: unknown) => void): void =>
  signal.addEventListener('abort', () => then(signal.reason))

const CODE = formatWhisperCode({
  publicId: newId('whisper'),
  readToken: aToken('whisper_read'),
  key: new Uint8Array(32),
  hasPassword: false,
})
