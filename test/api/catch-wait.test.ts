/** The list of events that waits for the next one. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { CatchCapability, EventPage } from '../../src/client/index.ts'
import { UNAUTHORIZED } from '../support/answer.ts'
import { anInbox, ask, send } from '../support/catch.ts'
import { limited } from '../support/limits.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { until } from '../support/until.ts'
import { listen, sendMany } from './catch-stream.ts'

const DAY = 24 * 60 * 60 * 1000
const METRICS = { MAYFLY_METRICS_PORT: '0' }
const LOOKS_EVERY = 5_000

const eventsPath = ({ publicId }: CatchCapability, query: string): string =>
  `/api/catch/${publicId}/events?${query}`

/** The page that a request for events is answered with. */
async function pageOf(
  server: TestServer,
  inbox: CatchCapability,
  query: string,
): Promise<EventPage> {
  const { status, text } = await ask(server, eventsPath(inbox, query), inbox.ownerToken)
  assert.equal(status, 200, text)
  return JSON.parse(text)
}

const sequences = ({ events }: EventPage): number[] => events.map(({ sequence }) => sequence)

/** How many requests wait, and how many streams are open. */
async function waiting(server: TestServer): Promise<number> {
  const { series } = await scrape(server)
  return series.get('mayfly_open_streams{route="/api/catch/:publicId/events"}') ?? 0
}

/** From now on no time passes by itself: nothing looks into the store but for news, and no wait ends. */
function stopTime(t: TestContext): { tick(ms: number): void } {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return t.mock.timers
}

/** Lets time pass until these are answered. */
async function passing<T>(clock: { tick(ms: number): void }, answers: Promise<T>): Promise<T> {
  let isDone = false
  void answers.finally(() => {
    isDone = true
  })
  while (!isDone) {
    clock.tick(LOOKS_EVERY)
    for (let i = 0; i < 100 && !isDone; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  return answers
}

suite('a wait for events', () => {
  const theServer = shareServer()

  test('a wait is answered at once if there are events, and like the list oldest first', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    await sendMany(server, inbox, { count: 4, body: String })
    const list = await ask(server, eventsPath(inbox, 'after=1&limit=2'), inbox.ownerToken)
    const waited = await ask(server, eventsPath(inbox, 'after=1&limit=2&wait=30'), inbox.ownerToken)
    assert.deepEqual(waited, list)
    assert.deepEqual(sequences(JSON.parse(list.text)), [2, 3])
    for (const query of [
      'wait=0',
      'after=4&wait=0',
      'after=9&wait=0',
      'wait=1',
      'after=4&wait=1',
    ]) {
      const page = await pageOf(server, inbox, query)
      assert.deepEqual(page, { events: [], nextCursor: null, latestSequence: 4 }, query)
    }
  })

  test('a wait without a sequence is answered with what comes next', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await sendMany(server, inbox, { count: 2, body: String })
    stopTime(t)
    const coming = pageOf(server, inbox, 'wait=30')
    while ((await waiting(server)) === 0);
    await send(server, inbox, { method: 'POST', body: 'three' })
    const page = await coming
    assert.deepEqual([sequences(page), page.latestSequence, page.nextCursor], [[3], 3, null])
    assert.equal(page.events[0]?.body, 'three')
  })

  test('no event is missed that is stored while a wait begins', async (t) => {
    const server = await theServer()
    const inbox = await anInbox(server, 'standard')
    // A missed one would be waited for until the test is given up.
    stopTime(t)
    for (let after = 0; after < 150; after++) {
      const [page] = await Promise.all([
        pageOf(server, inbox, `after=${after}&wait=30`),
        send(server, inbox, { method: 'POST', body: 'x' }),
      ])
      assert.deepEqual(sequences(page), [after + 1])
    }
  })

  test('a wait with a filter passes over all other events', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await send(server, inbox, { method: 'PUT', body: 'before' })
    stopTime(t)
    const filters = ['method=put', 'contentType=text/x', 'access=authenticated']
    const answers = filters.map((filter) => pageOf(server, inbox, `after=1&wait=30&${filter}`))
    while ((await waiting(server)) < 3);
    const type = { 'content-type': 'text/x; a=b' }
    const token = { authorization: `Bearer ${inbox.ingestToken}` }
    await sendMany(server, inbox, { count: 3, body: String })
    await send(server, inbox, { method: 'PUT' })
    await send(server, inbox, { method: 'POST', headers: type, body: 'x' })
    await send(server, inbox, { method: 'POST', headers: token })
    const pages = await Promise.all(answers)
    assert.deepEqual(pages.map(sequences), [[5], [6], [7]])
  })

  test('an event that is deleted at once ends no wait', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await send(server, inbox, {})
    const owner = server.mayfly.catch(inbox)
    await owner.deleteEvent((await owner.page()).events[0]?.id ?? '')
    stopTime(t)
    const answer = pageOf(server, inbox, 'after=0&wait=30')
    while ((await waiting(server)) === 0);
    await send(server, inbox, {})
    assert.deepEqual(sequences(await answer), [2])
  })
})

suite('the end of a wait', () => {
  test('a wait on an inbox that is destroyed ends at once, and the answer is that of the list', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    stopTime(t)
    const answer = ask(server, eventsPath(inbox, 'wait=30'), inbox.ownerToken)
    while ((await waiting(server)) === 0);
    await server.mayfly.catch(inbox).destroy()
    assert.deepEqual(await answer, UNAUTHORIZED)
    assert.deepEqual(await ask(server, eventsPath(inbox, ''), inbox.ownerToken), UNAUTHORIZED)
  })

  test('a wait on an inbox that is full ends at once, after its last event', async (t) => {
    const server = await startServer(t)
    const inbox = await anInbox(server)
    await sendMany(server, inbox, { count: 99, body: String })
    stopTime(t)
    const last = pageOf(server, inbox, 'after=99&wait=30')
    await send(server, inbox, {})
    assert.deepEqual(sequences(await last), [100])
    for (const query of ['wait=30', 'after=100&wait=30']) {
      const page = await pageOf(server, inbox, query)
      assert.deepEqual(page, { events: [], nextCursor: null, latestSequence: 100 })
    }
    assert.deepEqual(sequences(await pageOf(server, inbox, 'after=98&wait=30')), [99, 100])
  })

  test('a wait on an inbox that expires ends with an empty page, at the next look', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await send(server, inbox, {})
    const clock = stopTime(t)
    const answer = pageOf(server, inbox, 'wait=30')
    while ((await waiting(server)) === 0);
    server.clock.advance(DAY)
    const empty = { events: [], nextCursor: null, latestSequence: 1 }
    assert.deepEqual(await passing(clock, answer), empty)
    assert.deepEqual(await pageOf(server, inbox, 'after=0&wait=30'), empty)
  })

  test('a stop of the server ends a wait with an empty page', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await send(server, inbox, {})
    const answer = pageOf(server, inbox, 'wait=30')
    await until('the request to wait', async () => (await waiting(server)) === 1)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    await server.stop()
    assert.deepEqual(await answer, { events: [], nextCursor: null, latestSequence: 1 })
  })
})

suite('the limits of waits', () => {
  test('64 waiting requests and streams share the places of an inbox, and one event answers all', async (t) => {
    const server = await startServer(t, METRICS)
    const [inbox, other] = [await anInbox(server), await anInbox(server)]
    const streams = await Promise.all(Array.from({ length: 14 }, () => listen(t, server, inbox)))
    stopTime(t)
    const pages = Array.from({ length: 50 }, () => pageOf(server, inbox, 'wait=30'))
    while ((await waiting(server)) < 50);
    const refused = await fetch(server.url + eventsPath(inbox, 'after=0&wait=30'), {
      headers: { authorization: `Bearer ${inbox.ownerToken}` },
    })
    assert.deepEqual([refused.status, await refused.text()], [429, '{"error":"rate limited"}'])
    assert.equal(refused.headers.get('retry-after'), '10')
    assert.equal((await listen(t, server, inbox)).status, 429)
    assert.deepEqual(sequences(await pageOf(server, inbox, 'after=0')), [], 'the list is answered')
    const others = pageOf(server, other, 'wait=30')
    while ((await waiting(server)) < 51);
    await send(server, inbox, { method: 'POST', body: 'x'.repeat(60_000) })
    for (const page of await Promise.all(pages)) assert.deepEqual(sequences(page), [1])
    for (const stream of streams) assert.equal((await stream.next())?.event, 'capture')
    await send(server, other, {})
    assert.deepEqual(sequences(await others), [1])
    while ((await waiting(server)) > 0);
  })

  test('a wait takes from the limit of its owner once', async (t) => {
    const server = await limited(t, { owner: { perMinute: 10, burst: 10 } }, METRICS)
    const inbox = await anInbox(server)
    stopTime(t)
    const answer = fetch(server.url + eventsPath(inbox, 'wait=30&method=PUT'), {
      headers: { authorization: `Bearer ${inbox.ownerToken}` },
    })
    while ((await waiting(server)) === 0);
    await sendMany(server, inbox, { count: 9, body: String })
    await send(server, inbox, { method: 'PUT' })
    assert.match((await answer).headers.get('ratelimit') ?? '', /^"owner";r=9;/)
    const next = await fetch(server.url + eventsPath(inbox, ''), {
      headers: { authorization: `Bearer ${inbox.ownerToken}` },
    })
    assert.match(next.headers.get('ratelimit') ?? '', /^"owner";r=8;/)
  })
})
