import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { suspendInbox } from '../../src/catch/store.ts'
import { type CatchEvent, createMayfly, MayflyError } from '../../src/client/index.ts'
import { anInbox, asOperator, send } from '../support/catch.ts'
import { sendMany } from '../support/catch-stream.ts'
import { startServer } from '../support/server.ts'

/** What each request gets, in turn: an answer, or an error where there is none. */
type Script = (Response | Error)[]

test('the next event is asked for again after a lost connection, and never from another place', async (t) => {
  const { asked, inbox, passing } = scripted(t, [
    page([], 3),
    status('active'),
    new TypeError('fetch failed'),
    refused(502),
    new Response('{"events":[{"seq', { headers: JSON_TYPE }),
    page([], 5),
    status('active'),
    page([7], 7),
  ])
  const event = await passing(inbox.next({ after: 3, filter: { method: 'PUT' } }))
  assert.equal(event.sequence, 7)
  const after3 = 'events?method=PUT&after=3&wait=25&limit=1'
  assert.deepEqual(asked, [
    ...[after3, '', after3, after3, after3, after3],
    '',
    'events?method=PUT&after=5&wait=25&limit=1',
  ])
})

test('the next event is asked for again when the service says so', async (t) => {
  const { asked, inbox, afterSeconds } = scripted(t, [
    refused(429, 'rate limited', '7'),
    refused(503, 'service unavailable', '3'),
    page([1], 1),
  ])
  const coming = inbox.next({ after: 0 })
  for (const [seconds, requests] of [
    [6.999, 1],
    [0.001, 2],
    [2.999, 2],
    [0.001, 3],
  ] as const) {
    await afterSeconds(seconds)
    assert.equal(asked.length, requests)
  }
  assert.equal((await coming).sequence, 1)
})

test('the next event is not waited for where there never was an answer, or the token is wrong', async (t) => {
  for (const [answer, expected] of [
    [new TypeError('fetch failed'), { phrase: 'service unreachable' }],
    [refused(401, 'unauthorized'), { phrase: 'unauthorized', status: 401 }],
    [refused(400, 'invalid query'), { phrase: 'invalid query' }],
    [page([1], 1), { phrase: 'unexpected answer' }],
  ] as const) {
    await assert.rejects(scripted(t, [answer]).inbox.next({ after: 1 }), expected)
  }
})

test('the last event of a full inbox is not missed, and then nothing is waited for', async (t) => {
  const { inbox } = scripted(t, [page([], 99), status('exhausted'), page([100], 100)])
  assert.equal((await inbox.next({ after: 99 })).sequence, 100)
  const ended = scripted(t, [page([], 100), status('exhausted'), page([], 100)])
  await assert.rejects(ended.inbox.next({ after: 100 }), { phrase: 'inbox ended', status: 0 })
  const destroyed = scripted(t, [page([], 9), refused(401, 'unauthorized')])
  await assert.rejects(destroyed.inbox.next(), { phrase: 'inbox ended', status: 0 })
})

test('an inbox that is suspended is waited for, without haste', async (t) => {
  const { asked, inbox, afterSeconds } = scripted(t, [
    page([], 1),
    status('suspended'),
    page([], 1),
    status('active'),
    page([2], 2),
  ])
  const coming = inbox.next({ after: 1 })
  await afterSeconds(4.999)
  assert.equal(asked.length, 2)
  await afterSeconds(0.001)
  assert.equal(asked.length, 4, 'an empty page at once')
  await afterSeconds(1)
  assert.equal((await coming).sequence, 2)
})

test('each event is asked about once and in order, until one is wanted', async (t) => {
  const { asked, inbox } = scripted(t, [page([1, 2], 5), page([3, 4, 5], 5)])
  const seen: number[] = []
  const wanted = await inbox.waitFor(
    async ({ sequence }) => {
      seen.push(sequence)
      return sequence === 4
    },
    { after: 0, filter: { q: 'x' } },
  )
  assert.deepEqual([wanted.sequence, seen], [4, [1, 2, 3, 4]])
  assert.deepEqual(asked, [
    'events?q=x&after=0&wait=25&limit=20',
    'events?q=x&after=2&wait=25&limit=20',
  ])
  const failing = scripted(t, [page([1], 1)])
  const mistake = new MayflyError('unauthorized', 401)
  await assert.rejects(
    failing.inbox.waitFor(
      () => {
        throw mistake
      },
      { after: 0 },
    ),
    mistake,
  )
})

test('no event is lost or repeated, though every other answer is and the server restarts', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  let requests = 0
  const { catch: ofInbox } = createMayfly({
    baseUrl: 'http://mayfly.test',
    fetch: async (input, init) => {
      const { pathname, search } = new URL(String(input))
      const response = await fetch(`${server.url}${pathname}${search}`, init)
      if (++requests % 2 === 0) {
        await response.arrayBuffer()
        throw new TypeError('terminated')
      }
      return response
    },
  })
  const owner = ofInbox(inbox)
  const told: number[] = []
  const reading = (async () => {
    for (let after = 0; after < 60; ) {
      after = (await owner.next({ after })).sequence
      told.push(after)
    }
  })()
  await sendMany(server, inbox, { count: 30, body: String })
  await server.restart()
  await sendMany(server, inbox, { count: 30, body: String })
  await reading
  assert.deepEqual(
    told,
    Array.from({ length: 60 }, (_, i) => i + 1),
  )
})

test('a wait ends with its time, its signal, or its inbox', async (t) => {
  const server = await startServer(t)
  const capability = await anInbox(server)
  const inbox = server.mayfly.catch(capability)
  await send(server, capability, { method: 'POST', body: 'one' })
  const never = () => false
  await assert.rejects(inbox.waitFor(never, { timeoutMs: 200 }), {
    phrase: 'no event in time',
  })
  const reason = new Error('enough')
  const leaving = new AbortController()
  const waiting = inbox.waitFor(() => leaving.abort(reason) ?? false, {
    after: 0,
    signal: leaving.signal,
  })
  await assert.rejects(waiting, reason)
  await asOperator(server, suspendInbox(capability.publicId, server.clock.now()))
  const ended = assert.rejects(inbox.next({ after: 1 }), { phrase: 'inbox ended' })
  await inbox.page()
  await inbox.destroy()
  await ended
})

function scripted(t: TestContext, script: Script) {
  const asked: string[] = []
  const waiting = [...script]
  const mayfly = createMayfly({
    baseUrl: 'http://mayfly.test',
    fetch: async (input, init) => {
      init?.signal?.throwIfAborted()
      const { pathname, search } = new URL(String(input))
      asked.push((pathname + search).replace(/^\/api\/catch\/catch_1\/?/, ''))
      const answer = waiting.shift()
      if (!answer) throw new Error('a request too many')
      if (answer instanceof Error) throw answer
      return answer
    },
  })
  t.after(() => assert.equal(waiting.length, 0, 'requests that were not made'))
  t.mock.timers.reset()
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const afterSeconds = async (seconds: number): Promise<void> => {
    await turn()
    t.mock.timers.tick(seconds * 1000)
    await turn()
  }
  return {
    asked,
    inbox: mayfly.catch({ publicId: 'catch_1', ownerToken: 'catch_owner_x' }),
    afterSeconds,
    /** Lets time pass until this is settled. */
    async passing<T>(work: Promise<T>): Promise<T> {
      let isDone = false
      work.then(
        () => (isDone = true),
        () => (isDone = true),
      )
      while (!isDone) await afterSeconds(1)
      return work
    },
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }

const page = (sequences: number[], latestSequence: number): Response =>
  Response.json({ events: sequences.map(anEvent), nextCursor: null, latestSequence })

const anEvent = (sequence: number): Partial<CatchEvent> => ({
  ...{ sequence, method: 'PUT', path: '/x', query: '', headers: [], contentType: null },
  ...{ body: '', bodyEncoding: 'utf8' },
})

const status = (state: string): Response =>
  Response.json({ status: state, expiresAt: '2030-01-01T00:00:00.000Z' })

const refused = (code: number, error = 'internal error', retryAfter?: string): Response =>
  Response.json(
    { error },
    { status: code, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter } },
  )

/** Lets everything run that is ready to. */
async function turn(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}
