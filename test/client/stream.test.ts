import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMayfly, MayflyError, type StreamOptions } from '../../src/client/index.ts'

type Asked = { lastEventId: string | null; authorization: string | null; path: string }
/** What each connection gets, in turn: an answer, or an error where there is none. */
type Script = (Response | Error)[]

test('a stream takes up after the last event that was told, and tells none twice', async (t) => {
  const { asked, follow } = scripted(t, [
    told(capture(1), capture(2)),
    told(capture(2), capture(3), capture(1), capture(3), capture(4)),
    told(end('exhausted')),
  ])
  assert.deepEqual(await follow({ after: 0 }), { sequences: [1, 2, 3, 4], end: 'exhausted' })
  assert.deepEqual(
    asked.map(({ lastEventId }) => lastEventId),
    ['0', '2', '4'],
  )
  assert.deepEqual(asked[0], {
    lastEventId: '0',
    authorization: 'Bearer catch_owner_x',
    path: '/api/catch/catch_1/stream',
  })
})

test('a stream without a place to begin takes the server’s, so that an early loss is no gap', async (t) => {
  const { asked, follow } = scripted(t, [
    told('id: 41\n\n'),
    told('id: 44\n\n', capture(42)),
    told(end('expired')),
  ])
  assert.deepEqual(await follow(), { sequences: [42], end: 'expired' })
  assert.deepEqual(
    asked.map(({ lastEventId }) => lastEventId),
    [null, '41', '42'],
  )
})

test('a stream passes over events of other names, and comments', async (t) => {
  const { follow } = scripted(t, [
    told(':\n\n', 'event: later\ndata: x\n\n', 'data: y\n\n', capture(1), end('active')),
  ])
  assert.deepEqual(await follow({ after: 0 }), { sequences: [1], end: 'active' })
})

test('an event that was cut in the middle is told whole by the next connection', async (t) => {
  const { asked, follow } = scripted(t, [
    told(capture(1), capture(2).slice(0, -8)),
    told(capture(2), end('exhausted')),
  ])
  assert.deepEqual(await follow({ after: 0 }), { sequences: [1, 2], end: 'exhausted' })
  assert.equal(asked[1]?.lastEventId, '1')
})

test('a connection that broke is as good as one that ended', async (t) => {
  const { follow } = scripted(t, [
    broken(capture(1)),
    new TypeError('fetch failed'),
    refused(502),
    told(capture(2), end('exhausted')),
  ])
  assert.deepEqual(await follow({ after: 0 }), { sequences: [1, 2], end: 'exhausted' })
})

test('a stream tells each opening of its connection, and each loss once', async (t) => {
  const { follow } = scripted(t, [
    told(capture(1)),
    new TypeError('fetch failed'),
    refused(502),
    told(capture(2)),
    told(end('exhausted')),
  ])
  const states: string[] = []
  await follow({ after: 0, onConnection: (state) => states.push(state) })
  assert.deepEqual(states, ['open', 'lost', 'open', 'lost', 'open'])
})

test('a stream rejects an error that will not change: a wrong token, an inbox that is gone', async (t) => {
  for (const [status, phrase] of [
    [401, 'unauthorized'],
    [404, 'not found'],
    [400, 'invalid query'],
  ] as const) {
    const first = scripted(t, [refused(status, phrase)])
    await assert.rejects(first.follow(), isMayflyError(phrase, status))
    assert.equal(first.asked.length, 1)
    const later = scripted(t, [told(capture(1)), refused(status, phrase)])
    await assert.rejects(later.follow({ after: 0 }), isMayflyError(phrase, status))
    assert.equal(later.asked.length, 2)
  }
})

test('a stream rejects at once where there never was a connection', async (t) => {
  const lost = scripted(t, [new TypeError('fetch failed')]).follow()
  await assert.rejects(lost, isMayflyError('service unreachable', 0))
  await assert.rejects(scripted(t, [refused(500, 'internal error')]).follow(), MayflyError)
})

test('a stream rejects a page at once, and waits for one that stands in for a while to go away', async (t) => {
  const page = () => new Response('<h1>Log in</h1>', { headers: { 'content-type': 'text/html' } })
  const first = scripted(t, [page()])
  await assert.rejects(first.follow(), isMayflyError('unexpected answer', 200))
  const { follow } = scripted(t, [told(capture(1)), page(), told(capture(2), end('exhausted'))])
  assert.deepEqual(await follow({ after: 0 }), { sequences: [1, 2], end: 'exhausted' })
})

test('a stream rejects malformed events', async (t) => {
  for (const text of [
    'event: capture\ndata: {\n\n',
    'event: capture\ndata: 7\n\n',
    'event: capture\ndata: null\n\n',
    'event: capture\ndata: {"sequence":"1"}\n\n',
    'event: end\ndata: {}\n\n',
    'event: end\ndata: exhausted\n\n',
  ]) {
    const { asked, follow } = scripted(t, [told(text)])
    await assert.rejects(follow(), isMayflyError('unexpected answer', 200), text)
    assert.equal(asked.length, 1)
  }
})

test('a stream waits as long as a limit or a node that is away asks for', async (t) => {
  const { asked, following, afterSeconds } = paced(t, [
    refused(429, 'rate limited', '7'),
    refused(503, 'checkout unavailable', '3'),
    refused(503, 'checkout unavailable', '86400'),
    told(end('exhausted')),
  ])
  const outcome = following({ after: 0 })
  await afterSeconds(6.999)
  assert.equal(asked.length, 1)
  await afterSeconds(0.001)
  assert.equal(asked.length, 2)
  await afterSeconds(2.999)
  assert.equal(asked.length, 2)
  await afterSeconds(0.001)
  assert.equal(asked.length, 3)
  await afterSeconds(60)
  assert.equal(asked.length, 4, 'a minute at most')
  assert.equal((await outcome).end, 'exhausted')
})

test('a stream comes back at once after the first loss, then after longer and longer pauses', async (t) => {
  const losses = Array.from({ length: 10 }, () => new TypeError('fetch failed'))
  const { asked, following, afterSeconds, comesBackAfter } = paced(t, [
    told(capture(1)),
    ...losses,
    told(capture(2)),
    told(end('exhausted')),
  ])
  const outcome = following({ after: 0 })
  await afterSeconds(0)
  assert.equal(asked.length, 2)
  await comesBackAfter(0.5, 1, 2, 4, 8, 16, 30, 30, 30)
  await afterSeconds(30)
  await afterSeconds(2)
  assert.deepEqual(await outcome, { sequences: [1, 2], end: 'exhausted' })
})

test('a stream does not hammer a service that tells one event and drops, again and again', async (t) => {
  const { asked, following, afterSeconds, comesBackAfter } = paced(t, [
    ...[1, 2, 3, 4, 5, 6].map((sequence) => told(capture(sequence))),
    told(end('exhausted')),
  ])
  const outcome = following({ after: 0 })
  await afterSeconds(0)
  assert.equal(asked.length, 2, 'the first loss')
  await comesBackAfter(0.5, 1, 2, 2, 2)
  assert.deepEqual((await outcome).sequences, [1, 2, 3, 4, 5, 6])
})

test('a connection that lasted half a minute makes the next loss a first one', async (t) => {
  let lose: (() => void) | undefined
  const quiet = new ReadableStream<Uint8Array>({
    start: (controller) => {
      lose = () => controller.error(new TypeError('terminated'))
    },
  })
  const losses = Array.from({ length: 5 }, () => new TypeError('fetch failed'))
  const { asked, following, afterSeconds } = paced(
    t,
    [told(capture(1)), ...losses, new Response(quiet, EVENTS), told(end('exhausted'))],
    ['setTimeout', 'Date'],
  )
  const outcome = following({ after: 0 })
  for (const pause of [0, 0.5, 1, 2, 4, 8]) await afterSeconds(pause)
  assert.equal(asked.length, 7)
  await afterSeconds(30.001)
  lose?.()
  await afterSeconds(0)
  assert.equal(asked.length, 8, 'at once')
  assert.equal((await outcome).end, 'exhausted')
})

test('a stream that is cut again and again comes back after pauses, whatever the server says', async (t) => {
  const cut = Array.from({ length: 3 }, () => told('retry: 0\n\n'))
  const { asked, following, afterSeconds } = paced(t, [...cut, told(end('exhausted'))])
  const outcome = following({ after: 0 })
  await afterSeconds(0)
  assert.equal(asked.length, 2)
  await afterSeconds(0.49)
  assert.equal(asked.length, 2)
  await afterSeconds(0.01)
  assert.equal(asked.length, 3)
  await afterSeconds(1)
  assert.equal((await outcome).end, 'exhausted')
})

test('a stream ends when it is aborted: while it listens, while it waits, and before', async (t) => {
  const listening = new AbortController()
  const open = scripted(t, [openFor(capture(1))])
  const outcome = open.follow({ after: 0, signal: listening.signal })
  await turn()
  listening.abort()
  await assert.rejects(outcome, { name: 'AbortError' })

  const waiting = new AbortController()
  const away = scripted(t, [refused(503, 'checkout unavailable', '60')])
  const none = away.follow({ after: 0, signal: waiting.signal })
  await turn()
  waiting.abort(new Error('enough'))
  await assert.rejects(none, /enough/)

  const never = scripted(t, [])
  await assert.rejects(never.follow({ signal: AbortSignal.abort() }), { name: 'AbortError' })
})

test('a consumer that leaves lets the connection go', async (t) => {
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from(capture(1))),
    cancel: () => {
      isCancelled = true
    },
  })
  const { inbox } = scripted(t, [new Response(body, EVENTS)])
  for await (const { sequence } of inbox.stream({ after: 0 })) {
    assert.equal(sequence, 1)
    break
  }
  assert.equal(isCancelled, true)
})

type Followed = { sequences: number[]; end: string }

function scripted(t: TestContext, script: Script) {
  const asked: Asked[] = []
  const waiting = [...script]
  const fetch: typeof globalThis.fetch = async (input, init) => {
    init?.signal?.throwIfAborted()
    const headers = new Headers(init?.headers)
    asked.push({
      lastEventId: headers.get('last-event-id'),
      authorization: headers.get('authorization'),
      path: new URL(String(input)).pathname,
    })
    const answer = waiting.shift()
    if (!answer) throw new Error('a connection too many')
    if (answer instanceof Error) throw answer
    if (!init?.signal || !answer.body) return answer
    // As fetch does it: the signal ends the body too.
    return new Response(answer.body.pipeThrough(new TransformStream(), { signal: init.signal }), {
      status: answer.status,
      headers: answer.headers,
    })
  }
  const mayfly = createMayfly({ baseUrl: 'http://mayfly.test', fetch })
  const inbox = mayfly.catch({ publicId: 'catch_1', ownerToken: 'catch_owner_x' })

  async function follow(options: StreamOptions = {}): Promise<Followed> {
    const sequences: number[] = []
    const events = inbox.stream(options)
    for (;;) {
      const next = await events.next()
      if (next.done) return { sequences, end: next.value }
      sequences.push(next.value.sequence)
    }
  }
  t.after(() => assert.equal(waiting.length, 0, 'connections that were not made'))
  return { asked, inbox, follow }
}

/** The same, where the test owns the time. */
function paced(t: TestContext, script: Script, apis: ('setTimeout' | 'Date')[] = ['setTimeout']) {
  t.mock.timers.enable({ apis })
  const { asked, follow } = scripted(t, script)
  async function afterSeconds(seconds: number): Promise<void> {
    await turn()
    t.mock.timers.tick(seconds * 1000)
    await turn()
  }
  /** It waits exactly so long before each of its next attempts. */
  async function comesBackAfter(...pauses: number[]): Promise<void> {
    for (const pause of pauses) {
      const attempts = asked.length
      await afterSeconds(pause - 0.001)
      assert.equal(asked.length, attempts, `before ${pause} s`)
      await afterSeconds(0.001)
      assert.equal(asked.length, attempts + 1, `after ${pause} s`)
    }
  }
  return { asked, following: follow, afterSeconds, comesBackAfter }
}

const capture = (sequence: number): string =>
  `id: ${sequence}\nevent: capture\ndata: ${JSON.stringify({ sequence, body: 'é€😀' })}\n\n`

const end = (status: string): string => `event: end\ndata: ${JSON.stringify({ status })}\n\n`

const EVENTS = { headers: { 'content-type': 'text/event-stream; charset=utf-8' } }

const told = (...texts: string[]): Response => new Response(texts.join(''), EVENTS)

const refused = (status: number, error = 'internal error', retryAfter?: string): Response =>
  new Response(JSON.stringify({ error }), {
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  })

const broken = (text: string): Response => {
  const parts = [Buffer.from(text)]
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = parts.shift()
        if (part) controller.enqueue(part)
        else controller.error(new TypeError('terminated'))
      },
    }),
    EVENTS,
  )
}

const openFor = (text: string): Response =>
  new Response(
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from(text)),
    }),
    EVENTS,
  )

const isMayflyError = (phrase: string, status: number) => (error: unknown) =>
  error instanceof MayflyError && error.phrase === phrase && error.status === status

/** Lets everything run that is ready to. */
async function turn(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}
